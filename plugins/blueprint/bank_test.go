package blueprint

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
)

// bank is the agent of the blueprint in testdata/bank, as strict as a real one. It has one customer.
type bank struct {
	key string
	mu  sync.Mutex
	// accounts holds balances in cents.
	accounts map[string]int64
	blocked  []string
	done     map[string]any // results by idempotency key
	pages    []string
}

// newBank returns a bank that requires the key in the Authorization header.
func newBank(key string) *bank {
	accounts := map[string]int64{"checking": 245032, "savings": 100000}
	return &bank{key: key, accounts: accounts, done: make(map[string]any)}
}

// balance returns the balance of an account, in cents.
func (b *bank) balance(account string) int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.accounts[account]
}

// opened lists the accounts that were opened.
func (b *bank) opened() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.pages)
}

// refusal is an error in the agents' protocol.
type refusal struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

// ServeHTTP implements http.Handler.
func (b *bank) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	b.mu.Lock()
	defer b.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	switch account, terms := strings.CutSuffix(strings.TrimPrefix(r.URL.Path, "/accounts/"), "/terms"); {
	case r.URL.Path == "/health":
		reply(w, map[string]string{"status": "ok", "version": "1.0.0"})
	case r.Header.Get("Authorization") != b.key:
		w.WriteHeader(http.StatusUnauthorized)
	case r.URL.Path == "/invoke" && r.Method == http.MethodPost:
		b.invoke(w, r)
	case r.URL.Path == "/api/transactions" && r.Method == http.MethodGet:
		reply(w, b.transactions())
	case terms && r.Method == http.MethodGet:
		w.Header().Set("Content-Type", "text/markdown")
		fmt.Fprintf(w, "## Terms of your %s account\n\n- No fees.", account)
	default:
		w.WriteHeader(http.StatusNotFound)
	}
}

func reply(w http.ResponseWriter, v any) { _ = json.NewEncoder(w).Encode(v) }

// invoke serves the agents' protocol. A call with a known idempotency key is not repeated.
func (b *bank) invoke(w http.ResponseWriter, r *http.Request) {
	var q struct {
		Tool    string
		Input   input
		Context json.RawMessage
	}
	key := r.Header.Get("Idempotency-Key")
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, 1<<16)).Decode(&q); err != nil || key == "" {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	output, known := b.done[key]
	if !known {
		var refused *refusal
		output, refused = b.do(q.Tool, &q.Input)
		if refused != nil {
			w.WriteHeader(http.StatusUnprocessableEntity)
			reply(w, map[string]any{"success": false, "error": refused})
			return
		}
		b.done[key] = output
	}
	reply(w, map[string]any{"success": true, "output": output})
}

// receipt is the output of a payment.
type receipt struct {
	ID       string  `json:"confirmationId"`
	Amount   float64 `json:"amount"`
	Currency string  `json:"currency"`
	Status   string  `json:"status"`
}

// input is the input of any of the tools.
type input struct {
	AccountType, FromAccount, ToAccount, Currency, BillerID, CardID, Date, Recipient string
	Route, URL, Target                                                               string
	Amount                                                                           float64
}

func (b *bank) do(tool string, in *input) (any, *refusal) {
	switch tool {
	case "check_balance":
		balance := float64(b.accounts[in.AccountType]) / 100
		return map[string]any{"accountType": in.AccountType, "balance": balance, "currency": "USD"}, nil
	case "transfer":
		return b.transfer(in)
	case "pay_bill":
		return b.take("checking", in)
	case "transaction_history":
		return b.transactions(), nil
	case "balance_history":
		series := map[string]any{"name": in.AccountType, "data": []float64{2000, 2200.5, 2450.32}}
		return map[string]any{"labels": []string{"Jan", "Feb", "Mar"}, "series": []any{series}}, nil
	case "block_card":
		b.blocked = append(b.blocked, in.CardID)
		return nil, nil
	case "schedule_payment":
		return receipt{"s-1", in.Amount, "USD", "scheduled"}, nil
	case "navigate":
		return b.open(in)
	}
	return nil, &refusal{"TOOL_NOT_FOUND", "There is no tool " + tool + "."}
}

func (b *bank) transfer(in *input) (any, *refusal) {
	if in.FromAccount == in.ToAccount {
		return nil, &refusal{"INVALID_INPUT", "These are the same account."}
	}
	receipt, refused := b.take(in.FromAccount, in)
	if refused == nil {
		b.accounts[in.ToAccount] += cents(in.Amount)
	}
	return receipt, refused
}

func cents(amount float64) int64 { return int64(amount*100 + 0.5) }

func (b *bank) take(account string, in *input) (any, *refusal) {
	if b.accounts[account] < cents(in.Amount) {
		return nil, &refusal{"INSUFFICIENT_FUNDS", "There is not enough on the " + account + " account."}
	}
	b.accounts[account] -= cents(in.Amount)
	return receipt{fmt.Sprintf("c-%d", len(b.done)+1), in.Amount, in.Currency, "done"}, nil
}

func (b *bank) transactions() any {
	return []any{
		map[string]any{"date": "2026-03-01", "description": "Salary", "amount": 3000},
		map[string]any{"date": "2026-02-27", "description": "Rent", "amount": -1200.5},
	}
}

func (b *bank) open(in *input) (any, *refusal) {
	for _, page := range []string{in.Route, in.URL, in.Target} {
		if page != "" {
			b.pages = append(b.pages, page)
			return map[string]any{"page": page}, nil
		}
	}
	return nil, &refusal{"INVALID_INPUT", "Say which page: route or url."}
}

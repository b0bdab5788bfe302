package knowledge

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"synthbot/core/passage"
	"synthbot/core/txt"
	"synthbot/plugins/knowledge/cut"
)

// Questions is the format of a file with questions whose answers are known.
type Questions struct {
	Questions []Question `toml:"question" doc:"A question."`
}

// Question is a question and the passages that answer it.
type Question struct {
	Text    string   `toml:"text" required:"true" doc:"What is asked."`
	Sources []string `toml:"sources" required:"true" doc:"The passages that answer it, as in handbook/faq.md#refunds; any of them counts."`
}

// answers reports whether a passage is among the sources of the question. Passages below a heading belong to the
// heading.
func (q *Question) answers(m *passage.Match) bool {
	return slices.ContainsFunc(q.Sources, func(source string) bool {
		document, anchor, whole := strings.Cut(source, "#")
		if m.Source+"/"+m.Document != document {
			return source == m.Source+"/"+m.Document // an address with a fragment
		}
		isAbove := func(title string) bool { return cut.Anchor(title) == anchor }
		return !whole || m.Anchor == anchor || slices.ContainsFunc(strings.Split(m.Title, cut.Between), isAbove)
	})
}

// hitsAt lists the values of n for which hit@n is computed.
var hitsAt = [...]int{1, 3, 8}

// Rating is the quality of the search in one mode.
type Rating struct {
	Hits   [len(hitsAt)]float64 // hit@n: the share (0 … 1) of questions with an answer among the first n passages
	Rank   float64              // the mean reciprocal rank, 0 … 1
	Took   time.Duration        // mean time of a query
	Failed []string             // questions without an answer among the first three passages
	Found  bool                 // some query returned a passage
}

// Rate searches for all questions in one mode.
func (p *Plugin) Rate(ctx context.Context, questions []Question, mode passage.Mode) (r Rating, err error) {
	sources, err := p.host.Passages.Sources(ctx)
	if err != nil {
		return r, err
	}
	for i := range questions {
		q := &questions[i]
		began := time.Now()
		found, err := p.find(ctx, sources, q.Text, mode, hitsAt[len(hitsAt)-1])
		if err != nil {
			return r, err
		}
		r.Took += time.Since(began)
		r.Found = r.Found || len(found) > 0
		at := slices.IndexFunc(found, func(m passage.Match) bool { return q.answers(&m) })
		for k, n := range hitsAt {
			if at >= 0 && at < n {
				r.Hits[k] += 1 / float64(len(questions))
			}
		}
		if at >= 0 {
			r.Rank += 1 / float64(at+1) / float64(len(questions))
		}
		if at < 0 || at >= 3 {
			first := "nothing"
			if len(found) > 0 {
				first = reference(&found[0].Passage)
			}
			r.Failed = append(r.Failed, fmt.Sprintf("%s (found %s)", txt.ClipLine(q.Text, 200), first))
		}
	}
	r.Took /= time.Duration(max(len(questions), 1))
	return r, nil
}

// Eval prints the ratings of the searches by words, by meaning, and by both.
func (p *Plugin) Eval(ctx context.Context, out io.Writer, questions []Question) error {
	fmt.Fprintf(out, "%d questions\n%-12s %6s %6s %6s %6s %10s\n", len(questions), "",
		"hit@1", "hit@3", "hit@8", "MRR", "per query")
	var failed []string
	byMeaning := false
	for _, mode := range []struct {
		name string
		mode passage.Mode
	}{{"words", passage.Words}, {"meaning", passage.Meaning}, {"both", passage.Both}} {
		r, err := p.Rate(ctx, questions, mode.mode)
		if err != nil {
			return err
		}
		if mode.mode == passage.Meaning && !r.Found {
			fmt.Fprintf(out, "%-12s no engine with embedding_model, or no vectors yet\n", mode.name)
			continue
		}
		fmt.Fprintf(out, "%-12s %5.1f%% %5.1f%% %5.1f%% %6.3f %10s\n", mode.name,
			100*r.Hits[0], 100*r.Hits[1], 100*r.Hits[2], r.Rank, r.Took.Round(10*time.Microsecond))
		byMeaning = byMeaning || mode.mode == passage.Meaning
		if mode.mode == passage.Both && !byMeaning {
			continue // without meaning, both is the same as words
		}
		for _, f := range r.Failed {
			failed = append(failed, mode.name+": "+f)
		}
	}
	for i, f := range failed {
		if i == 0 {
			fmt.Fprintln(out, "\nNo answer among the first three:")
		}
		fmt.Fprintln(out, f)
	}
	return nil
}

// Look prints the passages that a search of the model would find for a text.
func (p *Plugin) Look(ctx context.Context, out io.Writer, text string) error {
	sources, err := p.host.Passages.Sources(ctx)
	if err != nil {
		return err
	}
	found, err := p.find(ctx, sources, text, passage.Both, searchMax)
	if err != nil {
		return err
	}
	for i := range found {
		m := &found[i]
		fmt.Fprintf(out, "%.2f  %s  %s\n    %s\n", m.Score, reference(&m.Passage), m.Title, txt.ClipLine(m.Text, 300))
	}
	if len(found) == 0 {
		fmt.Fprintln(out, "nothing found")
	}
	return nil
}

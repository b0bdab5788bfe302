package knowledge

import (
	"encoding/json"
	"path"
	"slices"
	"strings"

	"synthbot/core"
	"synthbot/core/action"
	"synthbot/core/passage"
	"synthbot/core/txt"
	"synthbot/plugins/knowledge/cut"
)

// marks matches marks, such as [k1] or [k1, k2], with preceding blanks. It also matches code, which citeText keeps.
var marks = txt.Pattern("(?s:```.*?(?:```|$))|`[^`\\n]+`|" + `[ \t]*\[\s*k\d+(?:\s*[,;]\s*k\d+)*\s*\]`)

// begunMark matches an incomplete mark at the end of a draft.
var begunMark = txt.Pattern(`[ \t]*\[\s*(?:k\d*(?:\s*[,;]\s*(?:k\d*)?)*)?$`)

var oneMark = txt.Pattern(`k\d+`)

// Edit implements action.Editor: it replaces marks in the messages of a plan by citations, and removes marks of
// passages that were not offered. A message of only such marks is dropped.
func (p *Plugin) Edit(who action.Requester, plan core.Plan) core.Plan {
	o, ok := p.offered.Get(who.Path)
	if !ok {
		o = new(offer)
	}
	var steps []core.Step
	for _, s := range plan.Steps {
		if strings.HasPrefix(s.Type, core.MessagePrefix) {
			payload, ok := o.cite(s.Payload)
			if !ok {
				continue // only marks, which were removed
			}
			s.Payload = payload
		}
		steps = append(steps, s)
	}
	plan.Steps = steps
	return plan
}

// EditDraft replaces marks in a draft like Edit, and removes an incomplete one at its end.
func (p *Plugin) EditDraft(place core.Path, text string) string {
	o, ok := p.offered.Get(place)
	if !ok || !strings.Contains(text, "[") {
		return text
	}
	return begunMark().ReplaceAllString(o.citeText(text), "")
}

// cite replaces the marks in the text of a message's payload. ok is false if the text becomes empty.
func (o *offer) cite(payload json.RawMessage) (cited json.RawMessage, ok bool) {
	var fields map[string]json.RawMessage
	var text string
	if json.Unmarshal(payload, &fields) != nil || json.Unmarshal(fields["text"], &text) != nil {
		return payload, true
	}
	changed := o.citeText(text)
	if changed == text {
		return payload, true
	}
	fields["text"] = core.JSON(changed)
	return core.JSON(fields), strings.TrimSpace(changed) != ""
}

// citeText replaces each mark by links or file names in parentheses, and removes unknown marks. Code stays as it is.
func (o *offer) citeText(text string) string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return marks().ReplaceAllStringFunc(text, func(found string) string {
		if strings.HasPrefix(found, "`") {
			return found
		}
		var cited []string
		for _, m := range oneMark().FindAllString(found, -1) {
			for i := range o.passages {
				c := citation(&o.passages[i])
				if m == mark(i) && !slices.Contains(cited, c) {
					cited = append(cited, c)
				}
			}
		}
		if len(cited) == 0 {
			return ""
		}
		return " (" + strings.Join(cited, ", ") + ")"
	})
}

const labelMax = 60 // characters of a name or title

// citation returns the citation of a passage as Markdown: a link, or the file's name and the heading.
func citation(p *passage.Passage) string {
	titles := strings.Split(p.Title, cut.Between)
	last := txt.ClipLine(titles[len(titles)-1], labelMax)
	if p.Link != "" {
		to := p.Link
		if p.Anchor != "" && !strings.Contains(to, "#") {
			to += "#" + p.Anchor
		}
		to = strings.NewReplacer("(", "%28", ")", "%29", " ", "%20").Replace(to)
		return "[" + txt.Literal(last) + "](" + to + ")"
	}
	if strings.HasPrefix(p.Source, taught) {
		return txt.Literal(last)
	}
	name := txt.Literal(txt.ClipLine(path.Base(p.Document), labelMax))
	if len(titles) > 1 {
		name += ", " + txt.Literal(last)
	}
	return name
}

package mcp

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"synthbot/core"
	"synthbot/core/action"
	"synthbot/core/schema"
	"synthbot/core/txt"
)

// Limits of texts of a server.
const (
	maxName        = 64   // bytes of an action's name
	maxBrief       = 99   // characters
	maxDescription = 1500 // bytes of a tool's description
	maxHint        = 160  // bytes of a property's description
)

// actionName returns the name of a tool's action. With mark, or if it is too long, it
// ends in a suffix that only this tool has.
func actionName(server, tool string, mark bool) string {
	name := server + "_" + strings.Trim(strings.Map(func(r rune) rune {
		switch {
		case 'a' <= r && r <= 'z', '0' <= r && r <= '9', r == '_', r == '-', r == '.':
			return r
		case 'A' <= r && r <= 'Z':
			return r + 'a' - 'A'
		}
		return '_'
	}, tool), "_")
	if !mark && len(name) <= maxName {
		return name
	}
	return action.MarkName(name, server, tool)
}

// line returns a text on one line, without control characters and runs of space.
func line(text string) string {
	text = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || unicode.Is(unicode.Cf, r) || r == utf8.RuneError || r == '\u2028' || r == '\u2029' {
			return ' '
		}
		return r
	}, text)
	return strings.Join(strings.Fields(text), " ")
}

// abbreviations end in a full stop that ends no sentence.
var abbreviations = []string{"e.g", "i.e", "etc", "vs", "approx", "No", "no", "incl"}

func sentence(text string) string {
	for i, r := range text {
		switch r {
		case '。', '！', '？':
			return text[:i]
		case '.', '!', '?', ';':
			rest := text[i+1:]
			word := text[strings.LastIndexAny(text[:i], " (")+1 : i]
			if rest == "" || rest[0] == ' ' && !slices.Contains(abbreviations, word) {
				return text[:i]
			}
		}
	}
	return text
}

// fillers precede the verb in descriptions, and say nothing.
var fillers = [...]string{
	"this tool can be used to ", "this tool is used to ", "this tool allows you to ", "this tool will ", "this tool ",
	"this function ", "a tool that ", "a tool to ", "a tool for ", "tool that ", "tool to ", "use this tool to ",
	"use this to ", "used to ", "use to ", "allows you to ", "allows to ", "lets you ", "can be used to ", "you can ",
	"helps you ", "please ", "it ",
}

// brief returns one line that says what a tool does. It begins with a verb, if the description has one there.
func brief(server, tool, description string) string {
	text := sentence(line(strings.NewReplacer("`", "", "*", "", "#", "").Replace(description)))
	for {
		rest := text
		for _, f := range fillers {
			if len(rest) > len(f) && strings.EqualFold(rest[:len(f)], f) {
				rest = rest[len(f):]
			}
		}
		if rest == text {
			break
		}
		text = rest
	}
	text = strings.TrimRight(text, " :,")
	first, rest, _ := strings.Cut(text, " ")
	verb, ok := imperative(first)
	switch {
	case text == "":
		text = "Run " + line(tool) + " of " + server
	case ok:
		text = strings.TrimSpace(verb + " " + rest)
	default:
		text = "Run " + line(tool) + ": " + text
	}
	return txt.Clip(text, maxBrief)
}

// verbs lists the verbs with which descriptions of tools begin.
var verbs = strings.Fields(`
access activate add analyze analyse annotate append apply archive ask assign attach begin browse build calculate call
cancel capture change check clear click clone close combine commit compare compile compress compute configure connect
control convert copy count create crop deactivate decode decrypt define delete deliver demonstrate deploy describe
detect determine disable disconnect display do download drag draw drop duplicate echo edit emit enable encode encrypt
enter estimate evaluate execute expand export extract fetch fill filter find finish follow fork format forward
generate get give go grant hover identify import index initialize insert inspect install invite invoke join keep
launch leave link list load locate lock log look make manage mark measure merge modify monitor move mute navigate
notify observe open order parse pause perform persist place play plot post predict prepare press preview print process
produce provide publish pull push put query queue read rebuild recall receive recommend record refresh register reject
release reload remember remove rename render reopen reorder repeat replace reply report request reserve reset resize
resolve restart restore resume retrieve return revert review revoke rotate run sample save scan schedule score scrape
search select send set share show simulate sleep solve sort split start stop store stream submit subscribe suggest
summarize summarise swap switch sync take tell test toggle track transcribe transfer transform translate trigger turn
type uncompress undo uninstall unlock unpause unsubscribe unzip update upgrade upload use validate verify view wait
watch write zip
`)

// imperative returns the imperative of a verb, such as List for lists. ok is false if the word is not one of verbs.
func imperative(word string) (string, bool) {
	lower := strings.ToLower(word)
	for _, end := range [][2]string{{"", ""}, {"s", ""}, {"es", ""}, {"ies", "y"}} {
		stem, ok := strings.CutSuffix(lower, end[0])
		form := stem + end[1]
		if ok && slices.Contains(verbs, form) {
			return strings.ToUpper(form[:1]) + form[1:], true
		}
	}
	return "", false
}

const (
	longSchema = 6 << 10 // bytes; longer schemas lose their descriptions
	maxSample  = 1000    // bytes of an example
)

var errSchema = errors.New("its schema describes no object")

// schemaOf returns a tool's schema for prompts: descriptions are cut, or left out if the schema is long. The titles are
// the bot's own, because users who are asked to confirm read them. raw is the schema as the SDK decoded it.
func schemaOf(raw any, title string) (json.RawMessage, error) {
	given, ok := raw.(map[string]any)
	if !ok || given["type"] != nil && given["type"] != "object" {
		return nil, errSchema
	}
	text := trimSchema(given, title, maxHint)
	if len(text) > longSchema {
		text = trimSchema(given, title, 0)
	}
	return text, nil
}

// trimSchema returns a schema without what models do not need. Descriptions have at most limit bytes.
func trimSchema(given map[string]any, title string, limit int) json.RawMessage {
	root := make(map[string]any)
	_ = json.Unmarshal(core.JSON(given), &root) // a copy
	schema.Each(root, func(n map[string]any) {
		for _, keyword := range []string{"$schema", "$comment", "title", "examples"} {
			delete(n, keyword)
		}
		text, _ := n["description"].(string)
		delete(n, "description")
		if text != "" && limit > 0 {
			n["description"] = txt.ClipBytes(line(text), limit)
		}
		properties, _ := n["properties"].(map[string]any)
		for name, property := range properties {
			if p, ok := property.(map[string]any); ok && p["description"] == nil {
				p["title"] = strings.NewReplacer("_", " ", "-", " ").Replace(name) // prompts do without
			}
		}
	})
	root["type"], root["title"] = "object", title
	delete(root, "description")
	return core.JSON(root)
}

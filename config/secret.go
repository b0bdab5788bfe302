package config

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"reflect"
	"strings"
	"unicode"
	"unicode/utf8"

	"synthbot/core"
	"synthbot/core/txt"
)

// maxSecret is the largest file of a secret in bytes.
const maxSecret = 64 << 10

// secret reads a secret or what its reference leads to. Faults name the
// reference, never the value.
func (r reader) secret(at *spot, dst reflect.Value) {
	text, ok := at.value.(string)
	if !ok {
		at.fault(mistaken(typeSecret, at.value))
		return
	}
	value, err := r.resolve(text)
	if err == nil {
		err = sound(value)
	}
	if err != nil {
		at.fault(name(text) + err.Error())
		return
	}
	dst.Set(reflect.ValueOf(core.NewSecret(value)))
}

// name is the reference as the beginning of a sentence.
func name(text string) string {
	if !isReference(text) {
		return ""
	}
	return txt.Clip(txt.Line(text), 120) + " "
}

func isReference(text string) bool {
	return strings.HasPrefix(text, "env:") || strings.HasPrefix(text, "file:")
}

func (r reader) resolve(text string) (string, error) {
	switch {
	case text == "":
		return "", nil
	case r.references && isReference(text):
		return text, nil
	case r.references:
		return "(literal)", nil
	}
	if variable, ok := strings.CutPrefix(text, "env:"); ok {
		return r.variable(variable)
	}
	if file, ok := strings.CutPrefix(text, "file:"); ok {
		return r.file(file)
	}
	return text, nil
}

func (r reader) variable(name string) (string, error) {
	if name == "" {
		return "", errors.New("names no variable; write env:NAME")
	}
	value := trimEnd(r.doc.options.getenv(name))
	if value == "" {
		return "", errors.New("is not set in the environment or empty; set it, or keep the secret in a file and write file:PATH")
	}
	return value, nil
}

// file reads a secret from the first place that has it.
func (r reader) file(path string) (string, error) {
	if path == "" {
		return "", errors.New("names no file; write file:PATH")
	}
	places := r.places(path)
	for _, place := range places {
		data, err := r.doc.options.read(place, maxSecret)
		switch value := trimEnd(string(data)); {
		case errors.Is(err, fs.ErrNotExist):
			continue
		case err != nil:
			return "", fmt.Errorf("cannot be read from %s: %s", place, reason(err))
		case value == "":
			return "", fmt.Errorf("is empty (%s); put the secret in it", place)
		default:
			if given := r.credentials(); given == "" || filepath.Dir(place) != filepath.Clean(given) {
				r.doc.secrets = append(r.doc.secrets, place)
			}
			return value, nil
		}
	}
	return "", fmt.Errorf("is not there (looked at %s); create it, readable for the bot only", strings.Join(places, " and "))
}

// places lists where a file may lie, the first choice first.
func (r reader) places(path string) []string {
	if filepath.IsAbs(path) {
		return []string{path}
	}
	var list []string
	if dir := r.credentials(); dir != "" && filepath.IsLocal(path) {
		list = append(list, filepath.Join(dir, path))
	}
	return append(list, filepath.Join(filepath.Dir(r.doc.file), path))
}

// credentials is where the system hands secrets over; "" where it does not.
func (r reader) credentials() string { return r.doc.options.getenv("CREDENTIALS_DIRECTORY") }

func trimEnd(text string) string {
	return strings.TrimRight(text, "\r\n")
}

// sound refuses what no platform can have given out, and what would break the
// header of a request.
func sound(value string) error {
	if !utf8.ValidString(value) || strings.ContainsFunc(value, unicode.IsControl) {
		return errors.New("holds a line break or another character that no secret has; let the secret stand alone there")
	}
	return nil
}

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

	"synthbot/core/secret"
	"synthbot/core/txt"
)

const maxSecret = 64 << 10 // bytes of a secret's file

// secret reads a secret, or resolves its reference. Faults name the reference, never the value.
func (r reader) secret(at *node, dst reflect.Value) {
	text, ok := at.value.(string)
	if !ok {
		at.fault(wrongType(typeSecret, at.value).Error())
		return
	}
	value, err := r.resolve(text)
	if err == nil && (!utf8.ValidString(value) || strings.ContainsFunc(value, unicode.IsControl)) {
		// No platform issues such a secret, and it is invalid in the header of a request.
		err = errors.New("contains a line break or another character that no secret has; " +
			"write nothing but the secret there")
	}
	switch {
	case err == nil:
		dst.Set(reflect.ValueOf(secret.New(value)))
	case IsReference(text):
		at.fault(txt.Clip(txt.Line(text), 120) + " " + err.Error())
	default:
		at.fault(err.Error())
	}
}

// IsReference reports whether a text is env:NAME or file:PATH.
func IsReference(text string) bool {
	return strings.HasPrefix(text, "env:") || strings.HasPrefix(text, "file:")
}

func (r reader) resolve(text string) (string, error) {
	variable, isVariable := strings.CutPrefix(text, "env:")
	file, isFile := strings.CutPrefix(text, "file:")
	switch {
	case text == "", r.references && IsReference(text):
		return text, nil
	case r.references:
		return "(literal)", nil
	case isVariable:
		return r.secretVariable(variable)
	case isFile:
		return r.secretFile(file)
	}
	return text, nil
}

func (r reader) secretVariable(name string) (string, error) {
	if name == "" {
		return "", errors.New("names no variable; write env:NAME")
	}
	value := trimEnd(r.doc.options.getenv(name))
	if value == "" {
		return "", errors.New("is not set in the environment or empty; " +
			"set it, or keep the secret in a file and write file:PATH")
	}
	return value, nil
}

// secretFile reads a secret from the first place that has the file.
func (r reader) secretFile(path string) (string, error) {
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
			return "", fmt.Errorf("cannot be read from %s: %s", place, ioReason(err))
		case value == "":
			return "", fmt.Errorf("is empty (%s); put the secret in it", place)
		default:
			given := r.credentialsDir()
			if given == "" || filepath.Dir(place) != filepath.Clean(given) {
				r.doc.secrets = append(r.doc.secrets, place)
			}
			return value, nil
		}
	}
	looked := strings.Join(places, " and ")
	return "", fmt.Errorf("is not there (looked at %s); create it, readable for the bot only", looked)
}

// places lists where a file may be, in the order of preference.
func (r reader) places(path string) []string {
	if filepath.IsAbs(path) {
		return []string{path}
	}
	var list []string
	dir := r.credentialsDir()
	if dir != "" && filepath.IsLocal(path) {
		list = append(list, filepath.Join(dir, path))
	}
	return append(list, filepath.Join(filepath.Dir(r.doc.file), path))
}

// credentialsDir returns the folder in which systemd provides secrets; "" for none.
func (r reader) credentialsDir() string { return r.doc.options.getenv("CREDENTIALS_DIRECTORY") }

func trimEnd(text string) string { return strings.TrimRight(text, "\r\n") }

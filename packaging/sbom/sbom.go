// Command sbom prints the software bill of materials of a Go binary (CycloneDX 1.5, JSON):
// the program, its modules with their checksums, and the Go version, as the linker wrote
// them into the binary. Releases contain its output. It uses no network, and prints the
// same bytes for the same binary.
package main

import (
	"cmp"
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/url"
	"os"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"time"
)

func main() {
	if err := run(os.Args[1:], os.Getenv("SOURCE_DATE_EPOCH"), os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "sbom:", err)
		os.Exit(1)
	}
}

// run prints the bill of one binary. epoch is its date in seconds since 1970, or empty for no date.
func run(args []string, epoch string, out io.Writer) error {
	if len(args) != 2 {
		return fmt.Errorf("usage: sbom BINARY VERSION")
	}
	data, err := os.ReadFile(args[0])
	if err != nil {
		return err
	}
	info, err := buildinfo.ReadFile(args[0])
	if err != nil {
		return err
	}
	b := billOf(info, args[1], sha256.Sum256(data))
	if epoch != "" {
		seconds, err := strconv.ParseInt(epoch, 10, 64)
		if err != nil {
			return fmt.Errorf("SOURCE_DATE_EPOCH: %w", err)
		}
		b.Metadata.Timestamp = time.Unix(seconds, 0).UTC().Format(time.RFC3339)
	}
	e := json.NewEncoder(out)
	e.SetIndent("", "  ")
	return e.Encode(b)
}

// The part of CycloneDX 1.5 that is used.
type (
	bill struct {
		Format       string       `json:"bomFormat"`
		Spec         string       `json:"specVersion"`
		Version      int          `json:"version"`
		Metadata     metadata     `json:"metadata"`
		Components   []component  `json:"components"`
		Dependencies []dependency `json:"dependencies"`
	}
	metadata struct {
		Timestamp string    `json:"timestamp,omitempty"`
		Component component `json:"component"`
	}
	component struct {
		Ref        string     `json:"bom-ref"`
		Type       string     `json:"type"`
		Name       string     `json:"name"`
		Version    string     `json:"version,omitempty"`
		Hashes     []hash     `json:"hashes,omitempty"`
		URL        string     `json:"purl"`
		Properties []property `json:"properties,omitempty"`
	}
	hash struct {
		Alg     string `json:"alg"`
		Content string `json:"content"`
	}
	property struct {
		Name  string `json:"name"`
		Value string `json:"value"`
	}
	dependency struct {
		Ref string   `json:"ref"`
		On  []string `json:"dependsOn"`
	}
)

// billOf lists the components in the build information. That does not say which module needs which, so the program
// depends on all of them.
func billOf(info *debug.BuildInfo, version string, sum [sha256.Size]byte) bill {
	program := part("application", info.Main.Path, version)
	program.Hashes = []hash{{"SHA-256", hex.EncodeToString(sum[:])}}
	for _, s := range info.Settings {
		program.Properties = append(program.Properties, property{"go:build:" + s.Key, s.Value})
	}
	std := part("library", "std", strings.TrimPrefix(info.GoVersion, "go"))
	parts := []component{std}
	for _, m := range info.Deps {
		parts = append(parts, moduleOf(m))
	}
	slices.SortFunc(parts, func(a, b component) int { return cmp.Compare(a.Ref, b.Ref) })
	needs := dependency{Ref: program.Ref}
	for _, c := range parts {
		needs.On = append(needs.On, c.Ref)
	}
	return bill{"CycloneDX", "1.5", 1, metadata{Component: program}, parts, []dependency{needs}}
}

// moduleOf returns the module that was built in: a replacement, if there is one.
func moduleOf(m *debug.Module) component {
	if m.Replace != nil {
		m = m.Replace
	}
	c := part("library", m.Path, m.Version)
	if m.Sum != "" {
		c.Properties = []property{{"go:sum", m.Sum}}
	}
	return c
}

func part(kind, path, version string) component {
	ref := "pkg:golang/" + path + "@" + url.PathEscape(version)
	return component{Ref: ref, Type: kind, Name: path, Version: version, URL: ref}
}

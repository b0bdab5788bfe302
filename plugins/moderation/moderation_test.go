package moderation

import (
	"testing"

	"synthbot/plugins/plugintest"
)

func TestScripts(t *testing.T) { plugintest.Run(t, "testdata/*.txt", plugintest.Of(New)) }

package e2e

import (
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/bursar-io/bursar/test/live"
)

// quickstartParts finds the marked code blocks of the README.
var quickstartParts = regexp.MustCompile("(?s)<!-- quickstart: ([a-z0-9-]+) -->\n```[a-z]+\n(.*?)```")

// clients is where the AWS CLI and a Python with boto3 are. Without them the
// test is skipped, except where all tests must run.
func clients(t *testing.T) string {
	t.Helper()
	dir := os.Getenv("BURSAR_TEST_VENV")
	if dir == "" {
		dir = "../../.venv"
	}
	dir, err := filepath.Abs(filepath.Join(dir, "bin"))
	live.Must(t, err)
	if _, err := os.Stat(filepath.Join(dir, "aws")); err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal(err)
		}
		t.Skipf("%v: make test installs it, or set BURSAR_TEST_VENV to a virtual environment with test/requirements.txt", err)
	}
	return dir
}

// TestQuickstart does what the README's quickstart says, word for word, but
// for the address and the directory.
func TestQuickstart(t *testing.T) {
	venv := clients(t)
	readme, err := os.ReadFile("../../README.md")
	live.Must(t, err)
	parts := map[string]string{}
	for _, m := range quickstartParts.FindAllStringSubmatch(string(readme), -1) {
		parts[m[1]] = m[2]
	}

	s := start(t)
	work := filepath.Dir(s.Dir) // the data directory is named data in it, as in the README
	live.Must(t, os.MkdirAll(filepath.Join(work, "bin"), 0o700))
	live.Must(t, os.Symlink(live.Bursar(), filepath.Join(work, "bin", "bursar")))
	live.Must(t, os.WriteFile(filepath.Join(work, "submit.py"), []byte(parts["boto3"]), 0o600))
	address, err := url.Parse(s.URL)
	live.Must(t, err)
	script := strings.Join([]string{
		"set -euo pipefail",
		strings.ReplaceAll(parts["environment"], "127.0.0.1:8080", address.Host),
		parts["aws-cli"],
		filepath.Join(venv, "python") + " submit.py",
		parts["bursar"],
		parts["fair-share"],
	}, "\n")
	command := exec.CommandContext(t.Context(), "bash", "-c", script)
	command.Dir = work
	command.Env = append(os.Environ(), "PATH="+venv+":"+os.Getenv("PATH"), "AWS_EC2_METADATA_DISABLED=true", "HOME="+work)
	output, err := command.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, output)
	}
	for _, want := range []string{"hello SUCCEEDED", "quota-share/research", "submitted hello as", "research", "submitted fairly as", "researchAda"} {
		if !strings.Contains(string(output), want) {
			t.Errorf("it did not print %q:\n%s", want, output)
		}
	}
}

package scenario

import (
	"os"
	"path/filepath"
	"testing"
)

// scenarioFiles are the repository's own scenarios, those of this package's
// tests, and those of a conformance suite where one lies beside the repository.
func scenarioFiles(t *testing.T) []string {
	t.Helper()
	var files []string
	for _, dir := range []string{"../../scenarios", "testdata", "../../../shared/scenarios"} {
		found, err := filepath.Glob(filepath.Join(dir, "*.yaml"))
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, found...)
	}
	return files
}

func TestScenariosHold(t *testing.T) {
	for _, file := range scenarioFiles(t) {
		t.Run(file, func(t *testing.T) {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			s, err := Parse(file, text)
			if err != nil {
				t.Fatal(err)
			}
			result, err := s.Run(nil)
			if err != nil {
				t.Fatal(err)
			}
			if result.Checks == 0 {
				t.Error("it expects nothing")
			}
			for _, f := range result.Failures {
				t.Errorf("%s:%d: at %s\nwant %s\n got %s", file, f.Line, Spell(f.At), f.Want, f.Got)
				for _, j := range f.Jobs {
					t.Logf("%s %s", j.Job, j.Why)
				}
			}
		})
	}
}

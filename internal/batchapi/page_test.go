package batchapi

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/bursar-io/bursar/internal/document"
)

// Whatever the names and the size of a page, the pages together are the list.
func TestPagesTogetherAreTheList(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		names := rapid.SliceOfNDistinct(rapid.StringMatching(`[a-z0-9-]{1,5}`), 0, 30, rapid.ID[string]).Draw(t, "names")
		slices.Sort(names)
		size := rapid.IntRange(1, 35).Draw(t, "size")
		var got []string
		token := ""
		for calls := 0; ; calls++ {
			if calls > len(names)+1 {
				t.Fatal("the pages never end")
			}
			body := fmt.Sprintf(`{"maxResults":%d}`, size)
			if token != "" {
				body = fmt.Sprintf(`{"maxResults":%d,"nextToken":%q}`, size, token)
			}
			in, err := document.Read([]byte(body))
			if err != nil {
				t.Fatal(err)
			}
			p := takePage(in, "List", "queue")
			if err := in.Err(); err != nil {
				t.Fatal(err)
			}
			part, next := pageOf(p, names, func(s string) string { return s })
			if len(part) > size {
				t.Fatalf("a page of %d, asked for %d", len(part), size)
			}
			got = append(got, part...)
			if token = next; token == "" {
				break
			}
		}
		if !slices.Equal(got, names) {
			t.Fatalf("pages of %d: %v, want %v", size, got, names)
		}
	})
}

func FuzzNextToken(f *testing.F) {
	p := page{size: 1, list: "List"}
	f.Add(p.token("name"))
	f.Add("")
	f.Add("AAAAAAAAAAA")
	f.Fuzz(func(t *testing.T, token string) {
		cursor, ok := p.open(token)
		if ok && p.token(cursor) != strings.NewReplacer("\r", "", "\n", "").Replace(token) {
			t.Fatalf("token %q yields cursor %q, whose token is %q", token, cursor, p.token(cursor))
		}
	})
}

func TestTokensCountForTheirListOnly(t *testing.T) {
	h := newHouse(t)
	h.quota(t)
	for i := range 3 {
		h.submit(t, fmt.Sprint("job-", i), "queue", "QS1", "")
	}
	shares, _ := h.call(t, "listquotashares", `{"jobQueue":"queue","maxResults":1}`)["nextToken"].(string)
	jobs, _ := h.call(t, "listservicejobs", `{"jobQueue":"queue","maxResults":1,"filters":[{"name":"JOB_NAME","values":["job*"]}]}`)["nextToken"].(string)
	if shares == "" || jobs == "" {
		t.Fatalf("no tokens: %q, %q", shares, jobs)
	}
	for name, c := range map[string]struct{ op, body string }{
		"of another operation": {"listschedulingpolicies", `{"nextToken":"` + shares + `"}`},
		"of another filter":    {"listservicejobs", `{"jobQueue":"queue","filters":[{"name":"JOB_NAME","values":["job"]}],"nextToken":"` + jobs + `"}`},
		"of another status":    {"listservicejobs", `{"jobQueue":"queue","jobStatus":"FAILED","nextToken":"` + jobs + `"}`},
		"with a character off": {"listquotashares", `{"jobQueue":"queue","nextToken":"` + string(shares[0]^1) + shares[1:] + `"}`},
		"cut":                  {"listquotashares", `{"jobQueue":"queue","nextToken":"` + shares[:len(shares)-2] + `"}`},
	} {
		t.Run(name, func(t *testing.T) {
			wantRefusal(t, send(h.door, "POST", "/v1/"+c.op, c.body), http.StatusBadRequest, "ClientException", "which is not a token that this operation returned")
		})
	}
	h.call(t, "listquotashares", `{"jobQueue":"queue","maxResults":2,"nextToken":"`+shares+`"}`) // another size is fine
}

// names lists the jobs' names that a list of jobs returns, page by page.
func (h *house) names(t *testing.T, size int, parameters string) []string {
	t.Helper()
	names := []string{}
	token := ""
	for {
		body := fmt.Sprintf(`{"jobQueue":"queue","maxResults":%d%s%s}`, size, parameters, token)
		list := h.call(t, "listservicejobs", body)
		entries, _ := list["jobSummaryList"].([]any)
		for _, entry := range entries {
			summary, _ := entry.(map[string]any)
			name, _ := summary["jobName"].(string)
			names = append(names, name)
		}
		next, more := list["nextToken"].(string)
		if !more {
			return names
		}
		if len(entries) != size {
			t.Fatalf("a page of %d of %d has a successor", len(entries), size)
		}
		token = `,"nextToken":"` + next + `"`
	}
}

func TestListServiceJobs(t *testing.T) {
	h := newHouse(t)
	h.quota(t)
	one := h.submit(t, "Alpha-1", "queue", "QS1", "") // at testStart
	h.reach(t, one, "RUNNING")
	h.call(t, "terminateservicejob", `{"jobId":"`+one+`","reason":"done with it"}`)
	h.reach(t, one, "FAILED")
	h.clock.Advance(testStart.Add(1_000_000_000).Sub(h.clock.Now())) // 1 s after the start
	two := h.submit(t, "alpha-2", "queue", "QS1", "")
	h.reach(t, two, "RUNNING")
	h.submit(t, "beta", "queue", "QS2", `,"schedulingPriority":3`)
	large := strings.Replace(submission("too-large", "queue", "QS3", ""), `\"InstanceCount\":1`, `\"InstanceCount\":100`, 1)
	h.call(t, "submitservicejob", large)

	filter := func(name, value string) string {
		return `,"filters":[{"name":"` + name + `","values":["` + value + `"]}]`
	}
	for name, c := range map[string]struct {
		parameters string
		want       []string
	}{
		"running unless told otherwise": {``, []string{"alpha-2"}},
		"by status":                     {`,"jobStatus":"FAILED"`, []string{"Alpha-1"}},
		"waiting":                       {`,"jobStatus":"RUNNABLE"`, []string{"too-large"}},
		"a status that none has":        {`,"jobStatus":"SUBMITTED"`, []string{}},
		"no filter in the list":         {`,"filters":[]`, []string{"alpha-2"}},
		"by whole name, any case":       {filter("JOB_NAME", "ALPHA-1"), []string{"Alpha-1"}},
		"by a part of a name":           {filter("JOB_NAME", "alpha"), []string{}},
		"by the start of a name":        {filter("JOB_NAME", "alpha*"), []string{"alpha-2", "Alpha-1"}},
		"by any name":                   {filter("JOB_NAME", "*"), []string{"too-large", "beta", "alpha-2", "Alpha-1"}},
		"the status does not count":     {filter("JOB_NAME", "alpha*") + `,"jobStatus":"FAILED"`, []string{"alpha-2", "Alpha-1"}},
		"by share":                      {filter("QUOTA_SHARE_NAME", "QS1"), []string{"alpha-2", "Alpha-1"}},
		"by share and status":           {filter("QUOTA_SHARE_NAME", "QS1") + `,"jobStatus":"FAILED"`, []string{"Alpha-1"}},
		"by a share without jobs":       {filter("QUOTA_SHARE_NAME", "none"), []string{}},
		"created before":                {filter("BEFORE_CREATED_AT", "1774000000001"), []string{"Alpha-1"}},
		"created before, exclusively":   {filter("BEFORE_CREATED_AT", "1774000000000"), []string{}},
		"created after":                 {filter("AFTER_CREATED_AT", "1774000000000"), []string{"too-large", "beta", "alpha-2"}},
		"created after all of them":     {filter("AFTER_CREATED_AT", "1999000000000"), []string{}},
	} {
		t.Run(name, func(t *testing.T) {
			for _, size := range []int{1, 2, 100} {
				if got := h.names(t, size, c.parameters); !slices.Equal(got, c.want) {
					t.Errorf("pages of %d: %v, want %v", size, got, c.want)
				}
			}
		})
	}

	parked := h.call(t, "listservicejobs", `{"jobQueue":"queue","jobStatus":"RUNNABLE"}`)
	summary, _ := parked["jobSummaryList"].([]any)[0].(map[string]any)
	if want := "MISCONFIGURATION:SERVICE_ENVIRONMENT_MAX_RESOURCE - "; !strings.HasPrefix(fmt.Sprint(summary["statusReason"]), want) {
		t.Errorf("statusReason %v, want one that starts with %q", summary["statusReason"], want)
	}
}

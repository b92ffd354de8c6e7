# Go and make are all that build, demo and bench need. What tests need beyond
# them (a linter, Python with AWS's clients) is installed below this directory.

GOLANGCI_LINT_VERSION := v2.15.0
GOLANGCI_LINT         := .tools/bin/golangci-lint-$(GOLANGCI_LINT_VERSION)

.PHONY: demo build test soak histories lint linter bench policies clean

## demo: show what Bursar does, in under a minute, with real training processes
demo: build
	@bin/bursar-demo

## build: the programs, in bin/
build:
	@CGO_ENABLED=0 go build -trimpath -o bin/ ./cmd/... ./examples/train

## test: everything that CI runs
test: build
	@./test/run

## soak: days of the whole control plane under simulated failures; SEEDS=n for more, SEED=n for one of them with all its events
SEEDS ?= 500
soak:
	@GODEBUG=tracebacklabels=1 go run ./test/soak -seeds $(SEEDS) -seed '$(SEED)'

## histories: the quota engine against its plain pass, over random histories; HISTORIES=n for more of each kind of queueing,
## RAPID_SEED=n for the same ones again
HISTORIES ?= 7000
RAPID_SEED ?= 0
histories:
	@go test ./internal/quota -run '^TestHistories$$' -timeout 30m -rapid.checks=$(HISTORIES) -rapid.seed=$(RAPID_SEED)

## lint: static checks
lint: $(GOLANGCI_LINT)
	$(GOLANGCI_LINT) run ./...

## linter: install what lint runs
linter: $(GOLANGCI_LINT)

$(GOLANGCI_LINT):
	GOBIN=$(CURDIR)/.tools/bin go install github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$(GOLANGCI_LINT_VERSION)
	mv .tools/bin/golangci-lint $@

## bench: what things cost
bench:
	go test -run '^$$' -bench . -benchmem ./...

## policies: compare policies on a history of jobs, TRACE=file.csv.gz (docs/policies.md)
policies:
	@go run ./examples/policies -trace '$(TRACE)'

## clean: remove what was built and installed here
clean:
	rm -rf bin .tools .venv

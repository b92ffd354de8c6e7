package scenario

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v4"

	"github.com/bursar-io/bursar/internal/quota"
)

// Encode writes the cohort as a policy file in its canonical form: keys in a
// fixed order, those left out that have their defaults. ParseCohort reads it
// back as it was.
func (c Cohort) Encode() ([]byte, error) {
	var text bytes.Buffer
	d, err := yaml.NewDumper(&text, yaml.WithIndent(2), yaml.WithLineWidth(-1))
	if err == nil {
		err = d.Dump(c.node())
	}
	if err == nil {
		err = d.Close()
	}
	if err != nil {
		return nil, fmt.Errorf("encode cohort %s: %w", c.Name, err)
	}
	return text.Bytes(), nil
}

func (c Cohort) node() *yaml.Node {
	var m mappingNode
	standard := defaultCohort()
	p, s := &c.Policy, &standard.Policy
	m.addIf(c.Name != "", "name", textNode(c.Name))
	m.addIf(true, "capacity", amountsNode(c.Capacity))
	m.addIf(true, "idleAssignment", wordNode(idleAssignments, p.IdleAssignment))
	m.addIf(true, "queueing", wordNode(queueings, p.Queueing))
	m.addIf(true, "priorityScope", wordNode(priorityScopes, p.PriorityScope))
	m.addIf(p.BorrowerPreemption, "borrowerPreemption", valueNode("true"))
	m.addIf(p.Rebalance, "rebalance", valueNode("true"))
	m.addIf(p.ShareUnallocated, "shareUnallocated", valueNode("true"))
	m.addIf(true, "victims", wordNode(victimOrders, p.Victims))
	m.addIf(p.AssumedCheckpointInterval != s.AssumedCheckpointInterval, "assumedCheckpointInterval", durationNode(p.AssumedCheckpointInterval))
	m.addIf(c.GracePeriod != 0, "gracePeriod", durationNode(c.GracePeriod))
	m.addIf(p.MinRuntime != 0, "minRuntime", durationNode(p.MinRuntime))
	m.addIf(c.Gang != standard.Gang, "gang", c.Gang.node())
	shares := &yaml.Node{Kind: yaml.SequenceNode}
	for _, s := range c.Shares {
		shares.Content = append(shares.Content, s.node())
	}
	m.addIf(true, "shares", shares)
	return m.block()
}

func (s Share) node() *yaml.Node {
	var m mappingNode
	m.addIf(true, "name", textNode(s.Name))
	m.addIf(true, "quota", amountsNode(s.Nominal))
	m.addIf(true, "sharing", wordNode(sharings, s.Sharing))
	m.addIf(s.BorrowPercent != quota.Unlimited, "borrowLimit", integerNode(s.BorrowPercent))
	m.addIf(len(s.BorrowLimits) > 0, "borrowLimits", amountsNode(s.BorrowLimits))
	m.addIf(len(s.LendLimits) > 0, "lendLimits", amountsNode(s.LendLimits))
	m.addIf(s.InSharePreemption, "inSharePreemption", valueNode("true"))
	m.addIf(s.Weight != defaultShare().Weight, "weight", integerNode(s.Weight))
	m.addIf(s.Disabled, "disabled", valueNode("true"))
	return m.block()
}

// node writes all settings: whether one is standard depends on others.
func (g Gang) node() *yaml.Node {
	var m, q mappingNode
	m.addIf(true, "timeout", durationNode(g.Timeout))
	m.addIf(true, "recoveryTimeout", durationNode(g.RecoveryTimeout))
	m.addIf(true, "blockAdmission", valueNode(strconv.FormatBool(g.BlockAdmission)))
	q.addIf(true, "timestamp", valueNode(string(g.Requeue.Timestamp)))
	q.addIf(true, "backoffBase", durationNode(g.Requeue.BackoffBase))
	q.addIf(true, "backoffMax", durationNode(g.Requeue.BackoffMax))
	q.addIf(true, "limit", integerNode(g.Requeue.Limit))
	q.addIf(true, "jitter", durationNode(g.Requeue.Jitter))
	m.addIf(true, "requeue", q.block())
	return m.block()
}

// mappingNode is the keys and values of a mapping in the order added.
type mappingNode []*yaml.Node

func (m *mappingNode) addIf(wanted bool, key string, value *yaml.Node) {
	if wanted {
		*m = append(*m, valueNode(key), value)
	}
}

func (m mappingNode) block() *yaml.Node { return &yaml.Node{Kind: yaml.MappingNode, Content: m} }

func valueNode(value string) *yaml.Node { return &yaml.Node{Kind: yaml.ScalarNode, Value: value} }

// textNode is a value that must be read as text even where it looks like
// something else.
func textNode(text string) *yaml.Node {
	return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: text}
}

func integerNode(n int64) *yaml.Node { return valueNode(strconv.FormatInt(n, 10)) }

func durationNode(d time.Duration) *yaml.Node { return valueNode(Spell(d)) }

func amountsNode(amounts quota.Amounts) *yaml.Node {
	m := &yaml.Node{Kind: yaml.MappingNode, Style: yaml.FlowStyle}
	for _, unit := range unitsInOrder(amounts) {
		m.Content = append(m.Content, textNode(unit), integerNode(amounts[quota.Unit(unit)]))
	}
	return m
}

func unitsInOrder[V any](of map[quota.Unit]V) []string {
	units := make([]string, 0, len(of))
	for unit := range of {
		units = append(units, string(unit))
	}
	slices.Sort(units)
	return units
}

// wordNode is the word that stands for a value.
func wordNode[T comparable](words map[string]T, value T) *yaml.Node {
	for word, v := range words {
		if v == value {
			return valueNode(word)
		}
	}
	return valueNode("")
}

// Spell writes a duration as files do, without units that are 0, as 1h5m.
func Spell(d time.Duration) string {
	text := d.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}

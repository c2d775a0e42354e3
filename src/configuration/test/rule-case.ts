import assert from 'node:assert/strict';
import { it } from 'node:test';
import { loadConfigurationSources } from '../load.ts';

/** A rule between options, with a document that breaks it and one that keeps it. */
export interface RuleCase {
  readonly rule: string;
  /** A document that breaks the rule; see `load`. */
  readonly invalid: string;
  readonly kind: 'error' | 'warning' | 'notice';
  readonly path: string;
  readonly message: RegExp;
  /** A document that keeps the rule, close to the one that breaks it. */
  readonly valid: string;
}

/** Reads a document as `homeserver.yaml`; the server name is added unless it begins with one. */
export function load(document: string) {
  const text = document.startsWith('server_name') ? document : `server_name: example.org\n${document}`;
  return loadConfigurationSources([{ file: 'homeserver.yaml', text }], { environment: {}, directory: '.' });
}

/** What is said of a document, of one kind. */
export function problemsOf(document: string, kind: RuleCase['kind']) {
  const { errors, warnings, notices } = load(document);
  return { error: errors, warning: warnings, notice: notices }[kind];
}

/** Declares a test of each rule: it speaks of the one document, once, and not of the other. */
export function testRules(cases: readonly RuleCase[]): void {
  for (const { rule, invalid, kind, path, message, valid } of cases) {
    it(rule, () => {
      const found = problemsOf(invalid, kind).filter((problem) => problem.path === path);
      assert.equal(found.length, 1, JSON.stringify(load(invalid).errors));
      assert.match(found[0]?.message ?? '', message);
      assert.deepEqual(load(valid).errors, []);
      assert.deepEqual(
        problemsOf(valid, kind).filter((problem) => problem.path === path && message.test(problem.message)),
        [],
      );
    });
  }
}

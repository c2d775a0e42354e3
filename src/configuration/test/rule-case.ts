import assert from 'node:assert/strict';
import { it } from 'node:test';
import { loadConfigurationSources } from '../load.ts';

/** A rule between options, with a document that breaks it and one that follows it. */
export interface RuleCase {
  /** The title of the test. */
  readonly rule: string;
  /** A document that breaks the rule. `load` adds the server name to it. */
  readonly invalid: string;
  readonly kind: 'error' | 'warning' | 'notice';
  /** Path of the option that the problem is reported for. */
  readonly path: string;
  readonly message: RegExp;
  /** A document that follows the rule and differs little from the one that breaks it. */
  readonly valid: string;
}

/** Loads a document as `homeserver.yaml`. Adds the server name unless the document begins with it. */
export function load(document: string) {
  const text = document.startsWith('server_name') ? document : `server_name: example.org\n${document}`;
  return loadConfigurationSources([{ file: 'homeserver.yaml', text }], { environment: {}, directory: '.' });
}

/** Returns the problems of one kind in a document. */
export function problemsOf(document: string, kind: RuleCase['kind']) {
  const { errors, warnings, notices } = load(document);
  return { error: errors, warning: warnings, notice: notices }[kind];
}

/**
 * Declares a test of each rule: the invalid document has the problem once, the valid one does not have it.
 */
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

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { generatedDocs } from '../scripts/generated-docs.ts';
import { ledgerProblems, optionMarkersIn } from '../scripts/option-ledger.ts';

const root = join(import.meta.dirname, '..');

describe('generated documentation', () => {
  const { files, problems } = generatedDocs(root);

  it('finds no option whose proving test was lost, and no title with the marker of an unknown option', () => {
    assert.deepEqual(problems, []);
  });

  for (const [file, content] of files) {
    it(`is up to date: ${file} (if not, run node scripts/generate-docs.ts)`, () => {
      assert.equal(readFileSync(join(root, file), 'utf8'), content);
    });
  }
});

describe('the ledger of options', () => {
  const call = (name: string, title: string) => `${name}(${title}, () => {});`;
  /** Returns the marker of a title. It is written in two parts, so that this file itself marks no option. */
  const marker = (paths: string) => `[${'option'}: ${paths}]`;

  it('reads the options of one or more markers from titles of tests in any kind of quotes', () => {
    const source = [
      call('test', `'hashes slowly ${marker('bcrypt_rounds')}'`),
      call('  await t.test', `"listens ${marker('listeners[].port, listeners[].resources[].names')}"`),
      call('it', `\`waits \${n} ${marker('push.jitter_delay')}\``),
    ].join('\n');
    assert.deepEqual(optionMarkersIn(source), [
      'bcrypt_rounds',
      'listeners[].port',
      'listeners[].resources[].names',
      'push.jitter_delay',
    ]);
  });

  it('ignores skipped tests and strings that are not titles', () => {
    const source = [
      call('test.skip', `'${marker('bcrypt_rounds')}'`),
      `// ${marker('daemonize')}`,
      `const text = '${marker('pid_file')}';`,
    ].join('\n');
    assert.deepEqual(optionMarkersIn(source), []);
  });

  it('reports markers of unknown options and of groups of options, and options that have lost their marker', () => {
    const options = [
      { path: 'email', isCounted: false },
      { path: 'email.smtp_host', isCounted: true },
      { path: 'pid_file', isCounted: true },
    ];
    const proofs = new Map([
      ['email', ['a.test.ts']],
      ['emial', ['b.test.ts']],
      ['email.smtp_host', ['c.test.ts']],
    ]);
    assert.deepEqual(ledgerProblems(proofs, options, ['pid_file', 'email.smtp_host']), [
      'a.test.ts: email is not an option that the ledger counts',
      'b.test.ts: emial is not an option that the ledger counts',
      'pid_file has lost the test that proved it',
    ]);
  });
});

import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { Findings } from '../problems.ts';
import { valueFromNode } from './source.ts';
import { parseYaml } from './yaml-source.ts';

function parse(text: string) {
  const findings = new Findings();
  const tree = parseYaml('a.yaml', text, findings);
  return { tree, findings, value: tree && valueFromNode(tree) };
}

test('parseYaml keeps the written form of scalars', () => {
  const { tree } = parse('version: 1.10\nquoted: "10"\nempty:\n');
  const scalar = (name: string) => {
    const node = tree?.entries.get(name)?.node;
    return node?.kind === 'scalar' ? [node.value, node.text, node.plain] : undefined;
  };
  assert.deepEqual(scalar('version'), [1.1, '1.10', true]);
  assert.deepEqual(scalar('quoted'), ['10', '10', false]);
  assert.deepEqual(scalar('empty'), [null, '', true]);
});

test('parseYaml records the places of names and values, counted from 1', () => {
  const { tree } = parse('# comment\n\na:\n  - b: 1\n    c: 2\n');
  const list = tree?.entries.get('a')?.node;
  const item = list?.kind === 'list' ? list.items[0] : undefined;
  const entry = item?.kind === 'map' ? item.entries.get('c') : undefined;
  assert.deepEqual(tree?.entries.get('a')?.at, { file: 'a.yaml', line: 3, column: 1 });
  assert.deepEqual(entry?.at, { file: 'a.yaml', line: 5, column: 5 });
  assert.deepEqual(entry?.node.at, { file: 'a.yaml', line: 5, column: 8 });
});

test('parseYaml reads an empty file as an empty mapping', () => {
  for (const text of ['', '\n', '# nothing\n', '---\n', '~\n', '\ufeff']) {
    const { value, findings } = parse(text);
    assert.deepEqual([value, findings.errors], [{}, []], JSON.stringify(text));
  }
});

test('parseYaml rejects files that are not a mapping or contain several documents', () => {
  for (const text of ['- a\n', 'word\n', 'a: 1\n---\nb: 2\n']) {
    const { tree, findings } = parse(text);
    assert.equal(tree, undefined);
    assert.equal(findings.errors.length, 1, text);
  }
});

test('parseYaml warns about a name given twice and uses the last value', () => {
  const { value, findings } = parse('a: 1\nb: {c: 1, c: 2}\na: 3\n');
  assert.deepEqual(value, { a: 3, b: { c: 2 } });
  assert.deepEqual(
    findings.warnings.map(({ path, at }) => [path, at?.line]),
    [
      ['b.c', 2],
      ['a', 3],
    ],
  );
  assert.match(findings.warnings[1]?.message ?? '', /the value in line 1 is not used/);
});

test('parseYaml resolves anchors, aliases and merge keys', () => {
  const { value } = parse('a: &x {p: 1, q: 2}\nb: *x\nc: {<<: *x, q: 3}\nd: {<<: [*x, {r: 4}]}\n');
  const x = { p: 1, q: 2 };
  assert.deepEqual(value, { a: x, b: x, c: { p: 1, q: 3 }, d: { ...x, r: 4 } });
});

test('parseYaml rejects a small file that expands into a huge one', () => {
  const levels = Array.from({ length: 20 }, (_, level) => {
    const inner = level === 0 ? 'x' : `*a${level - 1}`;
    return `a${level}: &a${level} [${Array(10).fill(inner).join(', ')}]`;
  });
  const { findings } = parse(`${levels.join('\n')}\n`);
  assert.match(findings.errors[0]?.message ?? '', /more than 100000 values/);
});

test('parseYaml rejects an alias inside the value that it stands for', () => {
  assert.match(parse('a: &x [*x]\n').findings.errors[0]?.message ?? '', /more than 100000 values|alias/);
});

test('parseYaml reports syntax errors with their place, and does not quote the file', () => {
  const texts = [
    'a: *hunter2\n',
    'a: "hunter2\n',
    'a: [hunter2\nb: 1\n',
    'a:\thunter2: x: y\n',
    '%hunter2\n---\na: 1\n',
    'a: !hunter2 b\n',
  ];
  for (const text of texts) {
    const { findings } = parse(text);
    const [error] = [...findings.errors, ...findings.warnings];
    assert.ok(error, text);
    assert.ok(!error.message.includes('hunter2'), text);
    assert.equal(error.at?.file, 'a.yaml');
  }
});

test('parseYaml rejects the name __proto__', () => {
  const { tree, findings } = parse('__proto__: {admin: true}\na: {__proto__: 1}\nconstructor: 1\n');
  assert.deepEqual(
    findings.errors.map(({ path }) => path),
    ['__proto__', 'a.__proto__'],
  );
  assert.deepEqual([...(tree?.entries.keys() ?? [])], ['a', 'constructor']);
});

test('parseYaml never throws, whatever the text (property)', () => {
  const pieces = fc.constantFrom(
    'a',
    ': ',
    '\n',
    '- ',
    '[',
    ']',
    '{',
    '}',
    '"',
    "'",
    '&x ',
    '*x',
    '|',
    '>',
    '%',
    '!',
    '#',
    '  ',
    '\t',
    '<<',
    '?',
    ',',
    '---',
    '...',
    '\0',
  );
  fc.assert(
    fc.property(
      fc.oneof(
        fc.string(),
        fc.array(pieces, { maxLength: 30 }).map((list) => list.join('')),
      ),
      (text) => {
        const { tree, findings } = parse(text);
        assert.ok(tree !== undefined || findings.errors.length > 0);
      },
    ),
    { numRuns: 2000 },
  );
});

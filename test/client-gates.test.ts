import assert from 'node:assert/strict';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { startTestServer, type TestServer } from './support/servers/server.ts';

const root = join(import.meta.dirname, '..');

/** A line of a table in docs/client-gates.md. */
interface Gate {
  readonly name: string;
  /** `yes`, `no`, `absent` or `object`; for requests the status. */
  readonly answer: string;
  /** The path of the test file that proves the answer. */
  readonly test: string;
}

/** Returns the lines of the tables in a section of docs/client-gates.md. */
function gatesIn(section: string): Gate[] {
  const text = readFileSync(join(root, 'docs', 'client-gates.md'), 'utf8');
  const [, rest = ''] = text.split(`## ${section}\n`);
  const [table = ''] = rest.split('\n## ');
  return table
    .split('\n')
    .filter((line) => line.startsWith('| `'))
    .map((line) => {
      const [, name = '', , , answer = '', test = ''] = line.split('|').map((cell) => cell.trim());
      return { name: name.slice(1, -1), answer: answer.split(':')[0] ?? '', test: test.slice(1, -1) };
    });
}

const sorted = (names: Iterable<string>) => [...names].sort();

describe('docs/client-gates.md', () => {
  let server: TestServer;
  let token: string;
  before(async () => {
    server = await startTestServer({ database: 'sqlite' });
    token = (await server.register('alice')).token;
  });
  after(() => server.stop());

  it('names test files that exist', () => {
    const gates = ['Versions', 'Features', 'Capabilities', 'Found out by a request'].flatMap(gatesIn);
    assert.ok(gates.length > 60, 'the tables could not be parsed');
    assert.deepEqual(
      gates.filter(({ test }) => !existsSync(join(root, test))).map(({ name, test }) => `${name}: ${test}`),
      [],
    );
  });

  it('lists exactly the versions of GET /versions', async () => {
    const { body } = await server.api('GET', '/_matrix/client/versions');
    const listed = gatesIn('Versions').filter(({ answer }) => answer === 'yes');
    assert.deepEqual(
      body['versions'],
      listed.map(({ name }) => name),
    );
  });

  it('lists exactly the unstable_features of GET /versions, with their values', async () => {
    const { body } = await server.api('GET', '/_matrix/client/versions');
    const features = body['unstable_features'] as Record<string, boolean>;
    const listed = gatesIn('Features');
    const present = listed.filter(({ answer }) => answer !== 'absent');
    assert.deepEqual(sorted(present.map(({ name }) => name)), sorted(Object.keys(features)));
    for (const { name, answer } of present) assert.equal(features[name], answer === 'yes', name);
  });

  it('lists requests with the status that the server answers', async () => {
    const requests = gatesIn('Found out by a request');
    assert.ok(requests.length >= 5, 'the table could not be parsed');
    for (const { name, answer } of requests) {
      const [method = '', path = ''] = name.split(' ');
      const { status, body } = await server.api(method, path, { token });
      const expected = answer === '404' ? [404, 'M_UNRECOGNIZED'] : [Number(answer), undefined];
      assert.deepEqual([status, body['errcode']], expected, name);
    }
  });

  it('lists exactly the capabilities of GET /capabilities, with their values', async () => {
    const { body } = await server.api('GET', '/_matrix/client/v3/capabilities', { token });
    const capabilities = body['capabilities'] as Record<string, { enabled?: boolean }>;
    const present = gatesIn('Capabilities').filter(({ answer }) => answer !== 'absent');
    assert.deepEqual(sorted(present.map(({ name }) => name)), sorted(Object.keys(capabilities)));
    for (const { name, answer } of present) {
      const { enabled } = capabilities[name]!;
      assert.equal(enabled, answer === 'object' ? undefined : answer === 'yes', name);
    }
  });
});

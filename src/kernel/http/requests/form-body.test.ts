import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import fc from 'fast-check';
import { Type } from 'typebox';
import { createKernelServer } from '../../../../test/support/servers/kernel-server.ts';
import { route } from '../index.ts';
import { parseForm } from './form-body.ts';

const parse = (text: string) => parseForm(Buffer.from(text));

/** Returns all values by name, as the parser of the platform reads them. */
function reference(text: string): Record<string, string[]> {
  const found: Record<string, string[]> = Object.create(null);
  for (const [name, value] of new URLSearchParams(`?${text}`)) found[name] = [...(found[name] ?? []), value];
  return found;
}

/** @returns undefined when the form is rejected; rethrows any other error */
function parsedOrRejected(parsing: () => ReturnType<typeof parseForm>) {
  try {
    return parsing();
  } catch (error) {
    if ((error as { errcode?: string }).errcode !== 'M_INVALID_PARAM') throw error;
    return undefined;
  }
}

const asLists = (form: ReturnType<typeof parseForm>) =>
  Object.fromEntries(Object.entries(form).map(([name, value]) => [name, [value].flat()]));

describe('parseForm', () => {
  it('reads names, values, spaces, percent-encoding and repeated names', () => {
    assert.deepEqual(
      { ...parse('user=%40a%3Ab&password=p+w%2B%C3%A9&x&=empty&x=2&&') },
      { user: '@a:b', password: 'p w+é', x: ['', '2'], '': 'empty' },
    );
  });

  it('parses every form that URLSearchParams writes, with the same result as URLSearchParams', () => {
    const text = fc.string({ unit: 'grapheme', maxLength: 20 });
    fc.assert(
      fc.property(fc.array(fc.tuple(text, text), { maxLength: 20 }), (pairs) => {
        const encoded = new URLSearchParams(pairs).toString();
        assert.deepEqual(asLists(parse(encoded)), { ...reference(encoded) });
      }),
    );
  });

  it('parses any text with the same result as URLSearchParams, or rejects it with M_INVALID_PARAM', () => {
    const piece = fc.oneof(
      fc.constantFrom(
        '&',
        '=',
        '+',
        '%',
        ';',
        '%41',
        '%c3%a9',
        '%00',
        '__proto__',
        'constructor',
        'é',
        '\u{1f525}',
      ),
      fc.string({ maxLength: 5 }),
    );
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 30 }), (pieces) => {
        const text = pieces.join('').toWellFormed();
        const form = parsedOrRejected(() => parse(text));
        if (form !== undefined) assert.deepEqual(asLists(form), { ...reference(text) });
      }),
      { numRuns: 1000 },
    );
  });

  it('throws no other error than M_INVALID_PARAM for random bytes', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 200 }), (bytes) => {
        parsedOrRejected(() => parseForm(Buffer.from(bytes)));
      }),
      { numRuns: 1000 },
    );
  });

  it('rejects broken percent-encoding and invalid UTF-8, which a lenient parser would replace', () => {
    for (const text of ['a=%', 'a=%4', 'a=%zz', 'a=%ff', 'a=%c3%28', '%ed%a0%80=b']) {
      assert.throws(() => parse(text), { errcode: 'M_INVALID_PARAM' }, text);
    }
    assert.throws(() => parseForm(Buffer.from([0x61, 0x3d, 0xff])), { errcode: 'M_INVALID_PARAM' });
  });

  it('returns fields named like members of Object.prototype as own members', () => {
    const form = parse('__proto__=a&constructor=b&toString=c');
    assert.deepEqual(Object.entries(form), [
      ['__proto__', 'a'],
      ['constructor', 'b'],
      ['toString', 'c'],
    ]);
    assert.equal(Object.getPrototypeOf(form), null);
  });

  it('rejects a form with more than 1,000 fields', () => {
    assert.equal(
      Object.keys(parse(Array.from({ length: 1000 }, (_, n) => `f${n}=1`).join('&'))).length,
      1000,
    );
    assert.throws(() => parse('a=1&'.repeat(500_000)), { errcode: 'M_INVALID_PARAM' });
  });
});

describe('a route with bodyMode form', () => {
  const body = Type.Object({
    name: Type.String({ minLength: 1 }),
    age: Type.Optional(Type.Integer()),
    agree: Type.Optional(Type.Boolean()),
    color: Type.Array(Type.String(), { default: [] }),
    kind: Type.String({ default: 'plain' }),
  });
  const server = createKernelServer({
    routes: [
      route(
        { method: 'POST', path: '/_proto/client/form', auth: 'none', bodyMode: 'form', body },
        ({ body }) => body,
      ),
      route(
        { method: 'POST', path: '/_proto/client/small', auth: 'none', bodyMode: 'form', body, bodyLimit: 50 },
        ({ body }) => body,
      ),
    ],
  });
  let base = '';
  before(async () => {
    base = (await server.start())[0]!;
  });
  after(() => server.stop(100));

  const form = 'application/x-www-form-urlencoded';
  async function post(text: string, type = form, path = 'form') {
    const headers: Record<string, string> = { 'content-type': type };
    const bytes = new TextEncoder().encode(text);
    const response = await fetch(`${base}/_matrix/client/${path}`, { method: 'POST', body: bytes, headers });
    return { status: response.status, body: (await response.json()) as Record<string, unknown> };
  }

  it('passes converted fields and defaults to the handler', async () => {
    const { body } = await post(
      'name=J%C3%BCrgen+M&age=41&agree=true&color=red&color=blue',
      `${form};charset=UTF-8`,
    );
    assert.deepEqual(body, { name: 'Jürgen M', age: 41, agree: true, color: ['red', 'blue'], kind: 'plain' });
    assert.deepEqual((await post('name=a&name=b')).body, { name: 'a', color: [], kind: 'plain' });
  });

  it('answers 400 M_MISSING_PARAM or M_INVALID_PARAM for fields that do not match the schema', async () => {
    const missing = await post('age=1');
    assert.deepEqual([missing.status, missing.body['errcode']], [400, 'M_MISSING_PARAM']);
    assert.equal(missing.body['error'], "Form field 'name' is missing");
    for (const text of ['name=a&age=old', 'name=a&agree=on', 'name=', 'name=%ff']) {
      const { status, body } = await post(text);
      assert.deepEqual([status, body['errcode']], [400, 'M_INVALID_PARAM'], text);
    }
    assert.deepEqual((await post('')).body['errcode'], 'M_MISSING_PARAM');
  });

  it('answers 415 M_UNKNOWN for a content type other than application/x-www-form-urlencoded', async () => {
    for (const type of [
      'application/json',
      'multipart/form-data; boundary=x',
      'text/plain',
      `${form}x`,
      '',
    ]) {
      const { status, body } = await post('name=a', type);
      assert.deepEqual([status, body['errcode']], [415, 'M_UNKNOWN'], type);
    }
  });

  it('answers 413 M_TOO_LARGE to a form of more than 64 KiB, or more than the limit of the route', async () => {
    assert.equal((await post(`name=${'a'.repeat(65_531)}`)).status, 200);
    const { status, body } = await post(`name=${'a'.repeat(65_532)}`);
    assert.deepEqual([status, body['errcode']], [413, 'M_TOO_LARGE']);
    assert.equal((await post(`name=${'a'.repeat(46)}`, form, 'small')).status, 413);
  });
});

import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import fc from 'fast-check';
import { runs } from '../../../test/support/inputs/thoroughness.ts';
import { createKernelServer } from '../../../test/support/servers/kernel-server.ts';
import { LongText, Reply, route, TextBuilder } from './index.ts';

/** Returns a text of about this many characters. */
const textOf = (length: number) => 'é"☃ '.repeat(length / 4);

describe('TextBuilder', () => {
  it('joins its texts with the texts of other builders, and encodes long texts', () => {
    const lengths = fc.array(fc.nat(100_000), { maxLength: 6 });
    const build = (parts: readonly number[]) => {
      const builder = new TextBuilder();
      for (const part of parts) builder.add(textOf(part));
      return builder;
    };
    fc.assert(
      fc.property(lengths, lengths, (first, second) => {
        const builder = build(first);
        assert.equal(
          builder.isEmpty,
          first.every((part) => part < 4),
        );
        builder.append(build(second));
        const text = builder.finish();
        assert.equal(String(text), [...first, ...second].map(textOf).join(''));
        assert.ok(typeof text !== 'string' || text.length < 65_536, `${text.length} characters`);
      }),
      { numRuns: runs(50) },
    );
  });
});

describe('long texts in responses', () => {
  const text = textOf(300_000);
  const server = createKernelServer({
    routes: [
      route({ method: 'GET', path: '/_proto/client/v3/long', auth: 'none' }, () => {
        const builder = new TextBuilder();
        for (let start = 0; start < text.length; start += 1_000)
          builder.add(text.slice(start, start + 1_000));
        const body = builder.finish();
        assert.ok(body instanceof LongText);
        return new Reply(200, body);
      }),
    ],
  });
  let address = '';
  before(async () => {
    address = (await server.start())[0]!;
  });
  after(() => server.stop(100));

  for (const encoding of ['identity', 'gzip'] as const) {
    it(`are sent whole, with the content encoding ${encoding}`, async () => {
      const headers = { 'accept-encoding': encoding };
      const response = await fetch(`${address}/_matrix/client/v3/long`, { headers });
      assert.equal(response.headers.get('content-encoding') ?? 'identity', encoding);
      if (encoding === 'identity') {
        assert.equal(response.headers.get('content-length'), String(Buffer.byteLength(text)));
      }
      assert.equal(await response.text(), text);
    });
  }
});

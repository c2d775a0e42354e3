import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { codePoint } from '../../../test/support/inputs/code-point.ts';
import { boundaryOf, MalformedMultipart, readMediaPart } from './multipart.ts';

const type = 'multipart/mixed; boundary=abc';
const metadataPart = '--abc\r\nContent-Type: application/json\r\n\r\n{}\r\n--abc\r\n';

/** Cuts bytes into pieces of these lengths. The first length follows the last one again. */
async function* cut(bytes: Buffer, lengths: readonly number[] = [bytes.length]) {
  let index = 0;
  for (let at = 0; at < bytes.length; ) {
    const length = Math.max(1, lengths[index++ % lengths.length]!);
    yield bytes.subarray(at, at + length);
    at += length;
  }
}

async function read(body: Buffer | string, lengths?: readonly number[], contentType = type) {
  const { headers, content } = await readMediaPart(contentType, cut(Buffer.from(body), lengths));
  const pieces: Uint8Array[] = [];
  for await (const piece of content) pieces.push(piece);
  return { headers: Object.fromEntries(headers), content: Buffer.concat(pieces) };
}

const malformed = (body: string, message: RegExp) =>
  assert.rejects(
    read(body),
    (error) => error instanceof MalformedMultipart && message.test(error.message),
    body,
  );

describe('readMediaPart', () => {
  it('returns headers and content of the media part', async () => {
    const body = `${metadataPart}Content-Type: image/png\r\nContent-Disposition: inline; filename=a.png\r\n\r\nPNG\r\n--ab\r\n--abc--\r\n`;
    const expected = {
      headers: { 'content-type': 'image/png', 'content-disposition': 'inline; filename=a.png' },
      content: Buffer.from('PNG\r\n--ab'),
    };
    assert.deepEqual(await read(body), expected);
    assert.deepEqual(await read(`\r\n${body}`, [1]), expected, 'after a line break, byte by byte');
    assert.deepEqual(await read(`${body}whatever comes after`), expected);
    assert.deepEqual(await read(`${metadataPart}\r\n\r\n--abc--`), { headers: {}, content: Buffer.alloc(0) });
  });

  it('rejects malformed responses', async () => {
    await malformed('', /begin/);
    await malformed('preamble\r\n--abc\r\n', /begin/);
    await malformed('--abc--\r\n', /part is missing/);
    await malformed(metadataPart, /header/);
    await malformed(`${metadataPart}\r\ntoo short`, /ends too early/);
    await malformed(`${metadataPart}\r\nx\r\n--abc\r\n\r\nthird\r\n--abc--`, /more than two parts/);
    await malformed(metadataPart.replace('{}', '[]'), /JSON object/);
    await malformed(metadataPart.replace('{}', '{"a":'), /is not JSON/);
    await malformed(metadataPart.replace('application/json', 'text/plain'), /content type application.json/);
    await malformed(metadataPart.replace('{}', `{"a":"${'x'.repeat(70_000)}"}`), /too large/);
    await malformed('--abc\r\nContent-Type: application/json\r\n\r\n{}', /ends too early/);
    await malformed('--abc\r\n{}\r\n--abc--', /header/);
    await malformed(`${metadataPart}A b: c\r\n\r\nx\r\n--abc--`, /header/);
    await malformed(`${metadataPart}${'A: b\r\n'.repeat(100)}\r\nx\r\n--abc--`, /too many/);
    await malformed(`${metadataPart}A: ${'b'.repeat(10_000)}\r\n\r\nx\r\n--abc--`, /header/);
    await malformed(`${metadataPart}A: ${' '.repeat(8_000)}x\n`, /header/);
  });

  it('reads the boundary of the content type', () => {
    const good = {
      'multipart/mixed; boundary=abc': 'abc',
      'Multipart/Mixed;boundary="a b"': 'a b',
      'multipart/mixed; charset=utf-8; boundary=a-1': 'a-1',
      'multipart/mixed; boundary="a\'()+_,-./:=?"; x=y': "a'()+_,-./:=?",
    };
    for (const [header, boundary] of Object.entries(good)) assert.equal(boundaryOf(header), boundary);
    for (const header of [
      undefined,
      '',
      'image/png',
      'multipart/mixed',
      'multipart/mixed; boundary=',
      'multipart/mixed; boundary="a "',
      'multipart/mixed; boundary="\u00e9"',
      `multipart/mixed; boundary=${'a'.repeat(71)}`,
      'multipart/form-data; boundary=abc',
    ]) {
      assert.throws(() => boundaryOf(header), MalformedMultipart, header);
    }
  });

  const lengths = fc.array(fc.integer({ min: 1, max: 50 }), { minLength: 1, maxLength: 20 });

  it('returns any content unchanged, in pieces of any length', async () => {
    const bytes = fc.uint8Array({ maxLength: 500 });
    // Contains much that resembles a boundary.
    const nearly = fc
      .array(fc.constantFrom('\r\n', '--', '-', 'abc', 'ab', '\r', '\n', 'x'), { maxLength: 40 })
      .map((parts) => Buffer.from(parts.join('')))
      .filter((text) => !text.includes('\r\n--abc'));
    await fc.assert(
      fc.asyncProperty(
        fc.oneof(bytes, nearly).filter((content) => !Buffer.from(content).includes('\r\n--abc')),
        lengths,
        async (media, cuts) => {
          const body = Buffer.concat([
            Buffer.from(`${metadataPart}A: b\r\n\r\n`),
            media,
            Buffer.from('\r\n--abc--\r\n'),
          ]);
          const answer = await read(body, cuts);
          assert.deepEqual(answer, { headers: { a: 'b' }, content: Buffer.from(media) });
        },
      ),
    );
  });

  it('throws no error except MalformedMultipart for random input, and has the same result when the input arrives in pieces', async () => {
    const words = fc.constantFrom(
      '--abc',
      '\r\n',
      '--',
      '{}',
      'Content-Type: application/json',
      ':',
      'Location: x',
      '\n',
      ' ',
      'é',
      '\0',
    );
    const nonsense = fc.oneof(
      fc.array(words, { maxLength: 60 }).map((parts) => Buffer.from(parts.join(''))),
      fc.array(words, { maxLength: 30 }).map((parts) => Buffer.from(metadataPart + parts.join(''))),
      fc.uint8Array({ maxLength: 300 }).map((bytes) => Buffer.from(bytes)),
    );
    await fc.assert(
      fc.asyncProperty(nonsense, lengths, async (body, cuts) => {
        const [whole, inPieces] = await Promise.all(
          [undefined, cuts].map((pieceLengths) =>
            read(body, pieceLengths).then(
              ({ headers, content }) => ({ headers, content: content.toString('latin1') }),
              (error: unknown) => {
                assert.ok(error instanceof MalformedMultipart, String(error));
                return error.message;
              },
            ),
          ),
        );
        assert.deepEqual(whole, inPieces);
      }),
    );
    await fc.assert(
      fc.property(fc.string({ unit: codePoint }), (header) => {
        try {
          assert.ok(boundaryOf(`multipart/mixed; ${header}`).length <= 70);
        } catch (error) {
          assert.ok(error instanceof MalformedMultipart);
        }
      }),
    );
  });
});

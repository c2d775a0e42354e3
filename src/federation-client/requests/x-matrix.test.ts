import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { cpuTime } from '../../../test/support/clocks/cpu-time.ts';
import { newSigningKey } from '../../../test/support/inputs/signing-key.ts';
import { canonicalJson } from '../../protocol/index.ts';
import { authorize, signedText } from './request-signature.ts';
import { formatXMatrix, parseXMatrix } from './x-matrix.ts';

const whole = { origin: 'a.example:8448', destination: 'b.example', key: 'ed25519:k', signature: 'ab+/' };

describe('formatXMatrix and parseXMatrix', () => {
  it('formats the header so that older servers accept it', () => {
    assert.equal(
      formatXMatrix(whole),
      'X-Matrix origin="a.example:8448",destination="b.example",key="ed25519:k",sig="ab+/"',
    );
    assert.equal(
      formatXMatrix({ ...whole, destination: undefined }),
      'X-Matrix origin="a.example:8448",key="ed25519:k",sig="ab+/"',
    );
  });

  it('parses every allowed form of the header', () => {
    for (const header of [
      formatXMatrix(whole),
      'X-Matrix origin=a.example:8448,destination=b.example,key=ed25519:k,sig="ab+/"',
      'x-matrix   ORIGIN = "a.example:8448" ,\tkey="ed25519:k", Sig="ab+/",destination="b.example"',
      'X-MATRIX origin="a\\.example:8448",destination="b.example",key="ed25519:\\k",sig="ab+/",other="x,\\"y"',
      'X-Matrix origin="a.example:8448",destination="b.example",key="ed25519:k",signature="ab+/"',
      'X-Matrix origin=a.example:8448,destination=b.example,key=ed25519:k,sig=ab+/',
    ]) {
      assert.deepEqual(parseXMatrix(header), whole, header);
    }
    assert.equal(parseXMatrix('X-Matrix origin=a,key=k,sig=s')?.destination, undefined);
  });

  it('rejects a malformed header', () => {
    for (const header of [
      '',
      'Bearer abc',
      'X-Matrix',
      'X-Matrix ',
      'X-Matrixorigin=a,key=k,sig=s',
      'X-Matrix origin=a,key=k',
      'X-Matrix origin="",key=k,sig=s',
      'X-Matrix origin=a,origin=b,key=k,sig=s',
      'X-Matrix origin=a,Origin=a,key=k,sig=s',
      'X-Matrix origin="a,key=k,sig=s',
      'X-Matrix origin="a"b,key=k,sig=s',
      'X-Matrix origin=a key=k sig=s',
      'X-Matrix origin,key=k,sig=s',
    ]) {
      assert.equal(parseXMatrix(header), undefined, header);
    }
  });

  it('parses a formatted header into the values that it was made from (property)', () => {
    const value = fc.stringMatching(/^[A-Za-z0-9.:_+/[\]-]{1,40}$/);
    const parts = fc.record(
      {
        origin: value,
        destination: fc.option(value, { nil: undefined }),
        key: value,
        signature: value,
      },
      { noNullPrototype: true },
    );
    fc.assert(fc.property(parts, (some) => assert.deepEqual(parseXMatrix(formatXMatrix(some)), some)));
  });

  it('parses any header in linear time and without exceptions', () => {
    const piece = fc.constantFrom(
      'X-Matrix ',
      'origin',
      '=',
      '"',
      '\\',
      ',',
      ' ',
      'key',
      'sig=',
      'a',
      '\t',
      '\u00e9',
    );
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 30 }), (pieces) => {
        const parsed = parseXMatrix(`X-Matrix ${pieces.join('')}`);
        assert.ok(parsed === undefined || (parsed.origin !== '' && parsed.key !== ''));
      }),
      { numRuns: 2_000 },
    );
    const took = cpuTime(() => {
      for (const part of ['"\\', 'a=', 'a="', ' ', ',', 'a=b,', '\\"'])
        parseXMatrix(`X-Matrix a="${part.repeat(8_000)}`);
      for (const part of ['"\\', 'a=', 'a="', ' ', ',', 'a=b,'])
        parseXMatrix(`X-Matrix ${part.repeat(8_000)}`);
    });
    assert.ok(took < 500, `${took} ms`);
  });
});

describe('signedText and authorize', () => {
  const parts = { method: 'PUT', uri: '/_matrix/a?b=%22', origin: 'a.example', destination: 'b.example' };

  it('returns the canonical JSON of the parts of a request, which the signature covers', () => {
    const content = { b: 1, a: ['"', '\u{1f600}'] };
    assert.equal(signedText(parts), canonicalJson(parts));
    assert.equal(
      signedText({ ...parts, content: canonicalJson(content) }),
      canonicalJson({ ...parts, content }),
    );
  });

  it('makes a signature that the public key verifies', () => {
    const key = newSigningKey('k');
    const header = parseXMatrix(authorize(parts, key));
    assert.deepEqual(
      [header?.origin, header?.destination, header?.key],
      ['a.example', 'b.example', 'ed25519:k'],
    );
    assert.equal(key.publicKey.verifies(signedText(parts), header!.signature), true);
  });
});

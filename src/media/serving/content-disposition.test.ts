import assert from 'node:assert/strict';
import { validateHeaderValue } from 'node:http';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { codePoint } from '../../../test/support/inputs/code-point.ts';
import { isFileName } from '../description.ts';
import { contentDisposition, fileNameIn } from './content-disposition.ts';

describe('contentDisposition', () => {
  it('returns inline only for types that browsers may show safely', () => {
    assert.equal(contentDisposition('image/png', undefined), 'inline');
    assert.equal(contentDisposition('Text/Plain; charset=utf-8', undefined), 'inline');
    for (const type of ['text/html', 'image/svg+xml', 'application/pdf', 'text/xml', 'image/png2', '']) {
      assert.equal(contentDisposition(type, undefined), 'attachment', type);
    }
  });

  it('writes a simple file name plain or quoted, and other file names in the extended form of RFC 8187', () => {
    const written = (name: string) => contentDisposition('image/png', name).slice('inline; '.length);
    assert.equal(written('cat.png'), 'filename=cat.png');
    assert.equal(written('my "cat".png'), 'filename="my \\"cat\\".png"');
    assert.equal(written('Kätzchen 🐈'), "filename*=utf-8''K%C3%A4tzchen%20%F0%9F%90%88");
    assert.equal(written('a\r\nSet-Cookie: x'), "filename*=utf-8''a%0D%0ASet-Cookie%3A%20x");
  });

  it('writes every file name so that fileNameIn() reads it unchanged', () => {
    fc.assert(
      fc.property(fc.string({ unit: codePoint, minLength: 1 }).filter(isFileName), (name) => {
        const header = contentDisposition('image/png', name);
        validateHeaderValue('content-disposition', header);
        assert.equal(fileNameIn(header), name);
      }),
    );
  });

  it('reads file names in headers of remote servers, and returns undefined for malformed headers', () => {
    assert.equal(fileNameIn('inline; filename=a.png'), 'a.png');
    assert.equal(fileNameIn('attachment ; FileName = "a; b"; size=3'), 'a; b');
    assert.equal(fileNameIn("attachment; filename=x; filename*=UTF-8''%e2%82%ac.txt"), '€.txt');
    assert.equal(fileNameIn("attachment; filename=x; filename*=utf-8''%ff"), 'x');
    assert.equal(fileNameIn('attachment; filename=x; filename=y'), 'x');
    for (const header of [
      undefined,
      '',
      'inline',
      'inline; filename=',
      'inline; name=x',
      'inline; filename="x',
    ]) {
      assert.equal(fileNameIn(header), undefined, header);
    }
    assert.equal(fileNameIn(`inline; filename="${'x'.repeat(9_000)}"`), undefined);
    const parts = fc.constantFrom(
      ';',
      '=',
      '"',
      '\\',
      'filename',
      'filename*',
      "utf-8''",
      '%',
      ' ',
      'x',
      'é',
    );
    fc.assert(
      fc.property(fc.array(parts, { maxLength: 40 }), (words) => {
        const name = fileNameIn(`inline;${words.join('')}`);
        assert.ok(name === undefined || isFileName(name));
      }),
    );
  });
});

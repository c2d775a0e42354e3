import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { scrub } from './scrub.ts';

describe('scrub', () => {
  it('removes Matrix ids, mail addresses, IP addresses, phone numbers, tokens, quotations, and the paths of URLs', () => {
    const cases: readonly (readonly [string, string])[] = [
      ['@ann:example.org is not in !room:example.org', '<id> is not in <id>'],
      ['$Rqnc-F-dvnEYJTyHq_iKxU2bZ1CI92-kuZq3a5lr5Zg is absent', '<id> is absent'],
      ['no such user (@ann:example.org), alias #a:b', 'no such user (<id>), alias <id>'],
      ['mail to ann@example.org failed', 'mail to <address> failed'],
      ['connect ECONNREFUSED 192.0.2.1:8448', 'connect ECONNREFUSED <ip>:8448'],
      ['connect ECONNREFUSED 2001:db8::1', 'connect ECONNREFUSED <ip>'],
      ['text to 491512345678', 'text to <number>'],
      ['token syt_YW5u_abcdefghij_1234 expired', 'token <secret> expired'],
      ['GET https://u:p@example.org/path/@ann?token=1 failed', 'GET https://example.org/… failed'],
      ['..."body": hello "you" }"... is not valid JSON', '..."…"... is not valid JSON'],
      [`open '/home/ann/hearth/media'`, `open '…'`],
      ['the body `hello you` is not text', 'the body `…` is not text'],
    ];
    for (const [text, expected] of cases) {
      assert.equal(scrub(text), expected);
    }
  });

  it('keeps names of properties, tables and columns, in single quotation marks where they are quoted, and words with apostrophes', () => {
    const kept = [
      "Cannot read properties of undefined (reading 'roomId')",
      'room.members is not a function',
      'no such table: profiles',
      "doesn't have a head, and that's wrong",
    ];
    for (const text of kept) assert.equal(scrub(text), text);
    const quoted = 'column "depth" of relation "events" does not exist';
    assert.equal(scrub(quoted), quoted.replaceAll('"', "'"));
  });

  it('cuts error messages of millions of characters before it applies its patterns', () => {
    for (const part of ['@', '"', "a'", 'http://', '1:', 'a1', '+1', '`']) {
      assert.ok(scrub(part.repeat(1_000_000)).length <= 2_000);
    }
  });
});

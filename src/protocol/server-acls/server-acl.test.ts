import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { foldCase } from '../globs/fold-case.ts';
import { compileGlob } from '../globs/glob.ts';
import type { JsonValue } from '../json.ts';
import { compileServerAcl, isServerAllowed, isServerWithPortAllowed } from './server-acl.ts';

describe('server ACL', () => {
  const cases: [why: string, content: JsonValue, server: string, expected: boolean][] = [
    ['no list at all', {}, 'example.org', false],
    ['an empty allow list', { allow: [] }, 'example.org', false],
    ['every server', { allow: ['*'] }, 'example.org', true],
    ['every server, IP literal', { allow: ['*'] }, '1.2.3.4', true],
    ['not listed', { allow: ['example.com'] }, 'example.org', false],
    ['deny before allow', { allow: ['*'], deny: ['evil.com'] }, 'evil.com', false],
    ['deny, name with port', { allow: ['*'], deny: ['evil.com'] }, 'evil.com:8448', false],
    ['deny, other port', { allow: ['*'], deny: ['evil.com'] }, 'evil.com:1', false],
    ['pattern with a port', { allow: ['*'], deny: ['evil.com:8448'] }, 'evil.com:8448', true],
    ['deny, other name', { allow: ['*'], deny: ['evil.com'] }, 'notevil.com', true],
    ['deny subdomains', { allow: ['*'], deny: ['*.evil.com'] }, 'a.b.evil.com', false],
    ['deny subdomains, not the domain', { allow: ['*'], deny: ['*.evil.com'] }, 'evil.com', true],
    ['deny without a dot', { allow: ['*'], deny: ['*evil.com'] }, 'notevil.com', false],
    ['a question mark stands for one character', { allow: ['*'], deny: ['evil.co?'] }, 'evil.com', false],
    [
      'the case of the pattern does not count',
      { allow: ['*'], deny: ['EVIL.com', '*.BAD.com'] },
      'evil.com',
      false,
    ],
    ['the case of the name does not count', { allow: ['*'], deny: ['*.bad.com'] }, 'X.Bad.Com', false],
    ['IPv4 literal', { allow: ['*'], allow_ip_literals: false }, '1.2.3.4', false],
    ['IPv4 literal and port', { allow: ['*'], allow_ip_literals: false }, '1.2.3.4:8448', false],
    ['IPv6 literal', { allow: ['*'], allow_ip_literals: false }, '[2001:db8::1]', false],
    ['IPv6 literal and port', { allow: ['*'], allow_ip_literals: false }, '[2001:db8::1]:8448', false],
    ['IPv6 literal denied by name', { allow: ['*'], deny: ['[2001:db8::1]'] }, '[2001:DB8::1]:8448', false],
    ['a name like an address', { allow: ['*'], allow_ip_literals: false }, '1.2.3.4.example.org', true],
    ['IPv4 literal that is in allow', { allow: ['1.2.3.4'], allow_ip_literals: false }, '1.2.3.4', false],
    ['allow_ip_literals is not a boolean', { allow: ['*'], allow_ip_literals: 'false' }, '1.2.3.4', true],
    ['allow is a string', { allow: '*' }, 'example.org', false],
    ['deny is a string', { allow: ['*'], deny: 'example.org' }, 'example.org', true],
    ['entries of other types', { allow: [1, null, ['*'], { a: '*' }, '*'], deny: [5] }, 'example.org', true],
    ['dots are not wildcards', { allow: ['example.org'] }, 'exampleXorg', false],
    ['content is not an object', ['*'], 'example.org', false],
  ];
  for (const [why, content, server, expected] of cases) {
    it(`${expected ? 'allows' : 'denies'} ${server}: ${why}`, () => {
      assert.equal(isServerAllowed(compileServerAcl(content), server), expected);
    });
  }

  it('isServerWithPortAllowed compares patterns with the name and its port', () => {
    const verdicts = (content: JsonValue) =>
      ['example.org', 'example.org:8448', '1.2.3.4:8448'].map((name) =>
        isServerWithPortAllowed(compileServerAcl(content), name),
      );
    assert.deepEqual(verdicts({ allow: ['*'], deny: ['example.org'] }), [false, true, true]);
    assert.deepEqual(verdicts({ allow: ['*'], deny: ['EXAMPLE.org:8448'] }), [true, false, true]);
    assert.deepEqual(verdicts({ allow: ['example.org:*'] }), [false, true, false]);
    assert.deepEqual(verdicts({ allow: ['*'], allow_ip_literals: false }), [true, true, false]);
  });

  it('allows every server if the state has no ACL', () => {
    assert.equal(isServerAllowed(undefined, '1.2.3.4'), true);
  });

  it('isServerAllowed agrees with matching one pattern after the other', () => {
    const pattern = fc.string({ unit: fc.constantFrom('a', 'b', '.', '*', '?', 'A'), maxLength: 6 });
    const patterns = fc.array(pattern, { maxLength: 5 });
    const name = fc.string({ unit: fc.constantFrom('a', 'b', '.', 'B'), minLength: 1, maxLength: 6 });
    const matchesOne = (list: string[], server: string) =>
      list.some((entry) => compileGlob(foldCase(entry))(foldCase(server)));
    fc.assert(
      fc.property(patterns, patterns, name, (allow, deny, server) => {
        const expected = !matchesOne(deny, server) && matchesOne(allow, server);
        assert.equal(isServerAllowed(compileServerAcl({ allow, deny }), server), expected);
      }),
      { numRuns: 5000 },
    );
  });

  it('accepts any JSON as the content of a server ACL', () => {
    fc.assert(
      fc.property(
        fc.jsonValue(),
        fc.jsonValue(),
        fc.jsonValue(),
        fc.string(),
        (allow, deny, literals, name) => {
          const content = { allow, deny, allow_ip_literals: literals } as JsonValue;
          assert.equal(typeof isServerAllowed(compileServerAcl(content), name), 'boolean');
          assert.equal(isServerAllowed(compileServerAcl(allow as JsonValue), name), false);
        },
      ),
    );
  });

  it('looks up exact names and subdomains instead of matching all patterns', () => {
    const deny = Array.from({ length: 2000 }, (_, i) => [`evil${i}.com`, `*.evil${i}.com`]).flat();
    const acl = compileServerAcl({ allow: ['*'], deny });
    assert.equal(acl.deny.others.length, 0);
    assert.equal(isServerAllowed(acl, 'a.b.evil1999.com:80'), false);
    assert.equal(isServerAllowed(acl, 'a.b.good.com:80'), true);
  });

  it('drops patterns and denies names that are longer than any server name', () => {
    assert.equal(compileServerAcl({ allow: [`*${'a?'.repeat(30_000)}`] }).allow.others.length, 0);
    assert.equal(isServerAllowed(compileServerAcl({ allow: ['*'] }), 'a'.repeat(256)), false);
  });

  it('caches a bounded number of verdicts', () => {
    const acl = compileServerAcl({ allow: ['*'], deny: ['*9.org'] });
    for (let round = 0; round < 2; round++) {
      for (let i = 0; i < 1500; i++) {
        assert.equal(isServerAllowed(acl, `server${i}.org`), i % 10 !== 9);
      }
      assert.ok(acl.verdicts.size <= 1000);
    }
  });
});

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { literalPrefix } from './literal-prefix.ts';
import { NamespaceSet } from './namespace-set.ts';

describe('NamespaceSet', () => {
  it('matches each of its patterns at the beginning of an id', () => {
    const set = new NamespaceSet([
      { regex: '@irc_.*', exclusive: false },
      { regex: '^@xmpp\\.[a-z]+:test$', exclusive: true },
      { regex: '@(a|b)_', exclusive: true },
    ]);
    const ids = [
      '@irc_x:test',
      '@xmpp.ann:test',
      '@xmpp.ann:test2',
      '@xmppxann:test',
      'x@irc_x',
      '@b_x:test',
    ];
    assert.deepEqual(
      ids.map((id) => [set.has(id), set.hasExclusively(id)]),
      [
        [true, false],
        [true, true],
        [false, false],
        [false, false],
        [false, false],
        [true, true],
      ],
    );
  });

  it('accepts two patterns with a group of the same name', () => {
    const set = new NamespaceSet([
      { regex: '@irc_(?P<name>.*)', exclusive: false },
      { regex: '@xmpp_(?P<name>.*)', exclusive: false },
    ]);
    assert.deepEqual(
      [set.has('@irc_a:test'), set.has('@xmpp_a:test'), set.has('@a:test')],
      [true, true, false],
    );
  });

  it('literalPrefix returns a prefix of all matches of a pattern', () => {
    for (const [pattern, prefix] of [
      ['^@irc_.*:example\\.org$', '@irc_'],
      ['@irc\\.x', '@irc.x'],
      ['@ircs?_', '@irc'],
      ['@irc_|@xmpp_', ''],
      ['@\\w+', '@'],
      ['(?i)@irc', ''],
      ['@irc\\.?x', '@irc'],
      ['#irc😀?_', '#irc'],
      ['#irc😀_.*', '#irc😀_'],
    ] as const) {
      assert.equal(literalPrefix(pattern), prefix, pattern);
    }
  });

  it('matches hostile patterns in linear time', () => {
    const set = new NamespaceSet([{ regex: '@(a+)+$', exclusive: true }]);
    assert.equal(set.has(`@${'a'.repeat(50_000)}!`), false);
  });
});

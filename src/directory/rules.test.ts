import assert from 'node:assert/strict';
import { test } from 'node:test';
import { directoryRules } from './rules.ts';

const noAdmins = async () => false;
const everything = { user_id: '*', alias: '*', room_id: '*' };
const allow = { ...everything, action: 'allow' as const };
const deny = { ...everything, action: 'deny' as const };

const rulesOf = (
  aliases: (typeof allow | typeof deny)[] | null,
  publications: (typeof allow | typeof deny)[] | null = null,
  isAdmin: (userId: string) => Promise<boolean> = noAdmins,
) => directoryRules({ alias_creation_rules: aliases, room_list_publication_rules: publications }, isAdmin);

test('rules for aliases: null allows all, an empty list allows none, and the first rule that matches decides', async () => {
  const mayCreate = (rules: ReturnType<typeof rulesOf>, user: string, alias: string, room?: string) =>
    rules.mayCreateAlias(user, alias, room);
  assert.equal(await mayCreate(rulesOf(null), '@a:test', '#x:test', '!r'), true);
  assert.equal(await mayCreate(rulesOf([]), '@a:test', '#x:test', '!r'), false);
  const rules = rulesOf([
    { ...deny, user_id: '@spam*:test' },
    { ...allow, alias: '#bridge_*:test' },
    { ...allow, room_id: '!known:*' },
  ]);
  assert.equal(await mayCreate(rules, '@spammer:test', '#bridge_1:test', '!r'), false);
  assert.equal(await mayCreate(rules, '@a:test', '#bridge_1:test', '!r'), true);
  assert.equal(await mayCreate(rules, '@a:test', '#other:test', '!r'), false);
  assert.equal(await mayCreate(rules, '@a:test', '#other:test', '!known:test'), true);
  assert.equal(
    await mayCreate(rules, '@a:test', '#other:test'),
    false,
    'a new room matches no pattern for rooms',
  );
});

test('rules for publication: null allows administrators only, rules apply to administrators too, and a pattern for aliases may match any alias of the room', async () => {
  const isAdmin = async (userId: string) => userId === '@admin:test';
  const withoutRules = rulesOf(null, null, isAdmin);
  assert.equal(await withoutRules.mayPublish('@a:test', '!r', []), false);
  assert.equal(await withoutRules.mayPublish('@admin:test', '!r', []), true);
  for (const list of [[], [deny], [{ ...deny, user_id: '@admin:*' }, allow]]) {
    assert.equal(await rulesOf(null, list, isAdmin).mayPublish('@admin:test', '!r', []), false);
  }
  const rules = rulesOf(null, [
    { ...deny, room_id: '!secret:*' },
    { ...allow, alias: '#open_*:test' },
  ]);
  assert.equal(await rules.mayPublish('@a:test', '!r:test', ['#x:test', '#open_1:test']), true);
  assert.equal(await rules.mayPublish('@a:test', '!r:test', ['#x:test']), false);
  assert.equal(await rules.mayPublish('@a:test', '!r:test', []), false);
  assert.equal(await rules.mayPublish('@a:test', '!secret:test', ['#open_1:test']), false);
  assert.equal(await rulesOf(null, [allow]).mayPublish('@a:test', '!r:test', []), true);
});

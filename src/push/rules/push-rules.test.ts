import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { clockReadsDuring, fastClock } from '../../../test/support/clocks/fast-clock.ts';
import { forSelectedDatabases } from '../../../test/support/databases/databases.ts';
import { sectionDefaults } from '../../../test/support/inputs/section-defaults.ts';
import { alice, bob, carol, RoomsUnderTest, RoutesUnderTest } from '../../../test/support/rooms/rooms.ts';
import { CacheRegistry, cachesSection } from '../../kernel/caches/index.ts';
import type { Clock } from '../../kernel/clock.ts';
import { PushRules, pushMigrations } from '../index.ts';
import { pushRuleRoutes } from './routes.ts';

function rulesOver({ database, streams, clock: clockOfRooms }: RoomsUnderTest, clock: Clock = clockOfRooms) {
  const caches = new CacheRegistry(clock, sectionDefaults(cachesSection));
  return new PushRules({ database, streams, caches, clock });
}

interface Rule {
  rule_id: string;
  enabled: boolean;
}

forSelectedDatabases(import.meta.url, (open) => {
  describe('push rules', () => {
    let fixture: RoomsUnderTest;
    let http: RoutesUnderTest;
    let rules: PushRules;
    const changes: string[] = [];
    before(async () => {
      fixture = await RoomsUnderTest.open(open, pushMigrations);
      rules = rulesOver(fixture);
      rules.pushRulesStream.subscribe(({ userId }) => changes.push(userId));
      http = await RoutesUnderTest.start(pushRuleRoutes(rules), fixture.clock);
    });
    after(() => http.stop());

    const call = (userId: string, method: string, path: string, body?: unknown) =>
      http.call(userId, method, `/pushrules/${path}`, body);
    const statusAndErrcode = async (answer: ReturnType<typeof call>) => {
      const { status, body } = await answer;
      return [status, body['errcode']];
    };
    const ids = async (userId: string, kind: 'override' | 'content' | 'room') =>
      (await rules.rulesetOf(userId))[kind].map((rule) => rule.rule_id).filter((id) => !id.startsWith('.'));

    it('returns the default push rules of the specification for a user without changes', async () => {
      const { body } = await call(carol, 'GET', '');
      const global = (await call(carol, 'GET', 'global/')).body;
      assert.deepEqual(body, { global });
      assert.deepEqual(await rules.content(carol), body);
      assert.equal((global['override'] as Rule[])[0]?.rule_id, '.m.rule.master');
      assert.deepEqual(global['room'], []);
    });

    it('adds push rules before and after other rules, replaces and removes them', async () => {
      const put = (path: string, body: unknown = { actions: ['notify'], pattern: 'x' }) =>
        call(alice, 'PUT', `global/content/${path}`, body);
      assert.deepEqual(await put('one'), { status: 200, body: {} });
      await put('two');
      await put('three?after=two');
      await put('four?before=two');
      assert.deepEqual(await ids(alice, 'content'), ['four', 'two', 'three', 'one']);
      await put('one', { actions: [], pattern: 'y' });
      const answer = await call(alice, 'GET', 'global/content/one');
      const expected = { rule_id: 'one', default: false, enabled: true, actions: [], pattern: 'y' };
      assert.deepEqual(answer.body, expected);
      assert.equal((await call(alice, 'DELETE', 'global/content/two')).status, 200);
      assert.deepEqual(await ids(alice, 'content'), ['four', 'three', 'one']);
      assert.deepEqual(await ids(bob, 'content'), []);
    });

    it('enables and disables push rules and changes their actions, also of default rules', async () => {
      const room = encodeURIComponent('!a:test');
      await call(alice, 'PUT', `global/room/${room}`, { actions: [] });
      for (const path of [`global/room/${room}`, 'global/underride/.m.rule.message']) {
        assert.equal((await call(alice, 'PUT', `${path}/enabled`, { enabled: false })).status, 200);
        assert.deepEqual((await call(alice, 'GET', `${path}/enabled`)).body, { enabled: false });
        // The body of early clients.
        assert.equal((await call(alice, 'PUT', `${path}/enabled`, true)).status, 200);
        assert.deepEqual((await call(alice, 'GET', `${path}/enabled`)).body, { enabled: true });
        const actions = ['notify', { set_tweak: 'highlight' }];
        assert.equal((await call(alice, 'PUT', `${path}/actions`, { actions })).status, 200);
        assert.deepEqual((await call(alice, 'GET', `${path}/actions`)).body, { actions });
      }
    });

    it('lists push rules by scope and by kind', async () => {
      const global = (await call(carol, 'GET', 'global/')).body;
      for (const kind of ['override', 'content', 'room', 'sender', 'underride']) {
        const { status, body } = await call(carol, 'GET', `global/${kind}/`);
        assert.deepEqual([status, body], [200, global[kind]], kind);
      }
      assert.deepEqual(await statusAndErrcode(call(carol, 'GET', 'global/strange/')), [
        400,
        'M_INVALID_PARAM',
      ]);
    });

    it('answers malformed paths of push rules with 400', async () => {
      const paths = ['global', 'device/', 'device/override/x', 'global/override', 'global/override/x/y'];
      for (const path of paths) {
        for (const method of ['GET', 'PUT', 'DELETE']) {
          const answer = await statusAndErrcode(call(carol, method, path, method === 'GET' ? undefined : {}));
          assert.deepEqual(answer, [400, 'M_UNRECOGNIZED'], `${method} ${path}`);
        }
      }
    });

    it('stores actions of push rules as they were sent, also historical ones, and rejects unknown ones', async () => {
      const actions = ['dont_notify', 'coalesce', { set_tweak: 'org.example.flash', value: 3 }];
      const put = (path: string, sent: unknown) => call(carol, 'PUT', `global/${path}`, { actions: sent });
      for (const rule of ['sender/%40x%3Atest', 'underride/.m.rule.message']) {
        if (rule.startsWith('sender')) assert.equal((await put(rule, actions)).status, 200);
        else assert.equal((await put(`${rule}/actions`, actions)).status, 200);
        assert.deepEqual((await call(carol, 'GET', `global/${rule}`)).body['actions'], actions);
        assert.deepEqual((await call(carol, 'GET', `global/${rule}/actions`)).body, { actions });
        for (const unknown of ['shout', 'org.example.wave', { tweak: 'sound' }, 5, null]) {
          const actionsPath = rule.startsWith('sender') ? rule : `${rule}/actions`;
          const answer = await statusAndErrcode(put(actionsPath, ['notify', unknown]));
          assert.deepEqual(answer, [400, 'M_BAD_JSON'], JSON.stringify(unknown));
        }
      }
      await call(carol, 'DELETE', 'global/sender/%40x%3Atest');
      await put('underride/.m.rule.message/actions', ['notify']);
    });

    it('answers invalid push rules with the errors of the specification', async () => {
      const put = (path: string, body: unknown) => statusAndErrcode(call(bob, 'PUT', `global/${path}`, body));
      const body = { actions: [] };
      assert.deepEqual(await put('content/x?before=nothing', { ...body, pattern: 'x' }), [400, 'M_UNKNOWN']);
      assert.deepEqual(await put('override/.mine', body), [400, 'M_INVALID_PARAM']);
      assert.deepEqual(await put('override/a%2Fb', body), [400, 'M_INVALID_PARAM']);
      assert.deepEqual(await put('strange/x', body), [400, 'M_INVALID_PARAM']);
      assert.deepEqual(await put('override/x', {}), [400, 'M_MISSING_PARAM']);
      assert.deepEqual(await put('override/x', { actions: 'notify' }), [400, 'M_BAD_JSON']);
      assert.deepEqual(await put('override/x/enabled', { enabled: true }), [404, 'M_NOT_FOUND']);
      assert.deepEqual(await put('override/x/actions', body), [404, 'M_NOT_FOUND']);
      for (const invalid of [{}, { enabled: 'yes' }, { enabled: null }, 'true', [true]])
        assert.deepEqual(await put('underride/.m.rule.message/enabled', invalid), [400, 'M_BAD_JSON']);
      assert.deepEqual(await statusAndErrcode(call(bob, 'GET', 'global/override/x')), [404, 'M_NOT_FOUND']);
      const deletion = call(bob, 'DELETE', 'global/underride/.m.rule.message');
      assert.deepEqual(await statusAndErrcode(deletion), [404, 'M_NOT_FOUND']);
      assert.equal(changes.includes(bob), false);
    });

    it('answers 413 M_TOO_LARGE to push rules above the maximum size', async () => {
      const pattern = 'x'.repeat(1000);
      const conditions = new Array(100).fill({ kind: 'event_match', key: 'k', pattern });
      let last: unknown[] = [];
      for (let index = 0; index < 30 && last[0] !== 413; index++) {
        last = await statusAndErrcode(
          call(carol, 'PUT', `global/override/${index}`, { actions: [], conditions }),
        );
      }
      assert.deepEqual(last, [413, 'M_TOO_LARGE']);
      assert.equal((await call(carol, 'DELETE', 'global/override/0')).status, 200);
    });

    it('keeps in memory the largest push rules that a user is allowed to have, so that they are compiled once', async () => {
      const erin = '@erin:test';
      const setRules = (count: number) =>
        rules.change(erin, (before) => {
          const roomRules = Array.from({ length: count }, (_, index) => ({
            rule_id: String(index),
            enabled: true,
            actions: [],
          }));
          return { ...before, rules: { ...before.rules, room: roomRules } };
        });
      let count = 20_000;
      const isAccepted = () =>
        setRules(count).then(
          () => true,
          () => false,
        );
      while (!(await isAccepted())) count -= 500;
      assert.ok(count >= 1_000, `${count} rules`);
      await rules.compiled(erin);
      assert.ok(
        !(rules.compiled(erin) instanceof Promise),
        `${count} rules are compiled again for each event`,
      );
    });

    it('compiles many push rules in time slices, so that other work does not wait for all of them', async () => {
      const frank = '@frank:test';
      const content = Array.from({ length: 500 }, (_, index) => ({
        rule_id: `${index}`,
        enabled: true,
        actions: [],
        pattern: `*long*pattern*${index}*`,
      }));
      await rules.change(frank, (before) => ({ ...before, rules: { ...before.rules, content } }));
      const clock = fastClock();
      const loading = rulesOver(fixture, clock);
      assert.ok((await clockReadsDuring(clock, async () => loading.compiled(frank))) > 500);
    });

    it('publishes changes of push rules on a stream, and loses none of the changes made at the same time', async () => {
      const before = fixture.streams.current;
      const dora = '@dora:test';
      const rooms = ['!a:test', '!b:test', '!c:test', '!d:test'];
      await Promise.all(
        rooms.map((id) => call(dora, 'PUT', `global/room/${encodeURIComponent(id)}`, { actions: [] })),
      );
      assert.deepEqual((await ids(dora, 'room')).sort(), rooms);
      assert.deepEqual(changes.slice(-4), [dora, dora, dora, dora]);
      const after = fixture.streams.current;
      assert.equal(await rules.changedIn(dora, before, after), true);
      assert.equal(await rules.changedIn(dora, after, after + 5), false);
      assert.equal(await rules.changedIn('@unknown:test', 0, after), false);
    });

    it('returns changed push rules after a restart', async () => {
      const restarted = rulesOver(fixture);
      assert.deepEqual(
        await restarted.rulesetOf(alice).then(({ content }) => content.map((rule) => rule.rule_id)),
        ['four', 'three', 'one', '.m.rule.contains_user_name'],
      );
    });
  });
});

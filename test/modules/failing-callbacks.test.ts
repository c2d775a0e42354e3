import assert from 'node:assert/strict';
import { after, afterEach, before, describe, it } from 'node:test';
import type { SpamChecker } from 'hearth/module';
import { callbackTimeout } from '../../src/modules/calls/module-calls.ts';
import type { JsonObject } from '../../src/protocol/index.ts';
import { eventually } from '../clients/eventually.ts';
import { selectedDatabases } from '../support/databases/databases.ts';
import { ModuleServer, moduleFile } from './module-server.ts';

for (const database of selectedDatabases(import.meta.url)) {
  describe(`callbacks of modules that fail or write to their arguments on ${database}`, () => {
    let fixture: ModuleServer;
    before(async () => {
      fixture = await ModuleServer.start({ database });
    });
    after(() => fixture.stop());
    afterEach(() => fixture.removeCallbacks());

    it('answers 500 to an event when the check of a module throws, returns a rejected promise, returns an unknown answer or never answers, and names the module in the log and in metrics', async () => {
      const roomId = await fixture.createRoom();
      const broken: readonly [string, SpamChecker['checkEvent'] & object][] = [
        [
          'error',
          () => {
            throw new Error('on purpose');
          },
        ],
        ['error', () => Promise.reject(new Error('on purpose'))],
        ['answer', () => undefined as never],
        ['answer', () => ({ errcode: 'X', error: 'x', status: 200 })],
        ['timeout', () => new Promise<never>(() => {})],
      ];
      for (const [reason, checkEvent] of broken) {
        const failuresBefore = await fixture.failures('checkEvent', reason);
        fixture.checker = { checkEvent };
        const { status, body } = await fixture.clock.skipping(
          callbackTimeout,
          fixture.say(fixture.alice, roomId, 'hello'),
        );
        fixture.checker = {};
        assert.deepEqual([status, body['errcode']], [500, 'M_UNKNOWN'], reason);
        assert.equal(await fixture.failures('checkEvent', reason), failuresBefore + 1, reason);
        const line = fixture.log.findLast(({ msg }) => msg === 'A callback of a module failed');
        assert.deepEqual(
          [line?.['module'], line?.['callback'], line?.['reason']],
          [moduleFile, 'checkEvent', reason],
        );
      }
      assert.equal((await fixture.say(fixture.alice, roomId, 'hello')).status, 200);
    });

    it('names in the log and in metrics a module that blocks the process', async () => {
      fixture.checker = {
        checkEvent: () => {
          fixture.clock.advance(150);
          return 'allow';
        },
      };
      assert.equal((await fixture.say(fixture.alice, await fixture.createRoom(), 'hello')).status, 200);
      assert.ok((await fixture.failures('checkEvent', 'blocking')) > 0);
      const line = fixture.log.findLast(({ msg }) => msg === 'A callback of a module blocked the process');
      assert.deepEqual([line?.['module'], line?.['callback']], [moduleFile, 'checkEvent']);
    });

    it('keeps modules from changing the prototype of all objects, for instance by setting a property at a path that a user sends', async () => {
      const roomId = await fixture.createRoom();
      fixture.checker = {
        checkEvent({ content }) {
          let object = {} as Record<string, unknown>;
          const path = String(content['body']).split('.');
          for (const name of path.slice(0, -1)) object = object[name] as Record<string, unknown>;
          object[path.at(-1)!] = true;
          return 'allow';
        },
      };
      assert.equal((await fixture.say(fixture.alice, roomId, 'seen')).status, 200);
      assert.equal((await fixture.say(fixture.alice, roomId, 'constructor.prototype.polluted')).status, 500);
      assert.equal((Object.prototype as Record<string, unknown>)['polluted'], undefined);
    });

    it('ignores what modules write to events that they have received or returned', async () => {
      const roomId = await fixture.createRoom({ topic: 'stored' });
      await fixture.call(fixture.bob, 'POST', `/rooms/${roomId}/join`, {});
      const write = (content: JsonObject) =>
        Object.assign(content, { membership: 'leave', topic: 'written' });
      const received: JsonObject[] = [];
      const returned: { msgtype: string; body: string }[] = [];
      fixture.checker = {
        checkEvent: ({ content }) => {
          write(content);
          return 'allow';
        },
      };
      fixture.rules = {
        async checkEventAllowed({ type, content }, state) {
          if (type === 'm.room.member') return { content: write(content) };
          write((await state.get('m.room.topic', ''))!.content);
          const contentOfModule = { msgtype: 'm.text', body: 'own' };
          returned.push(contentOfModule);
          return { content: contentOfModule };
        },
        onNewEvent: ({ content }) => void received.push(write(content)),
      };
      const memberContent = { membership: 'join', displayname: 'B' };
      const path = `/rooms/${roomId}/state/m.room.member/${fixture.bob.userId}`;
      assert.equal((await fixture.call(fixture.bob, 'PUT', path, memberContent)).status, 500);
      const sending = fixture.say(fixture.bob, roomId, 'hello');
      await eventually('the content of the module', () => returned.length === 1);
      returned[0]!.body = 'changed';
      const { body: sent } = await sending;
      await eventually('the new event', () => received.length === 1);
      fixture.removeCallbacks();
      const contentOf = (path: string) => fixture.read(roomId, path);
      const event = await contentOf(`/event/${sent['event_id']}`);
      assert.deepEqual(event['content'], { msgtype: 'm.text', body: 'own' });
      assert.equal((await contentOf('/state/m.room.topic'))['topic'], 'stored');
      const joined = (await contentOf(`/state/m.room.member/${fixture.bob.userId}`))['membership'];
      assert.equal(joined, 'join');
    });
  });
}

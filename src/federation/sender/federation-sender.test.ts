import assert from 'node:assert/strict';
import { afterEach, describe, it } from 'node:test';
import { forServerDatabases } from '../../../test/support/databases.ts';
import { type Recipient, SenderUnderTest, until } from '../../../test/support/federation-sender.ts';
import { alice } from '../../../test/support/rooms.ts';
import { buildEvent, type JsonObject, SigningKey, selectAuthEventKeys } from '../../protocol/index.ts';
import type { SenderTables } from './tables.ts';

const minute = 60_000;

forServerDatabases(import.meta.url, (open) => {
  describe('the federation sender', () => {
    let test: SenderUnderTest;
    afterEach(() => test.close());

    async function start<const Names extends readonly string[]>(names: Names, options = {}) {
      test = await SenderUnderTest.open(open, options);
      const recipients: Recipient[] = [];
      for (const name of names) recipients.push(await test.recipient(name));
      const roomId = await room(...names);
      return {
        roomId,
        recipients: recipients as unknown as { readonly [I in keyof Names]: Recipient },
        say: (body: string) => test.under.say(alice, roomId, body),
      };
    }

    const room = (...names: readonly string[]) =>
      test.under.room(alice, ...names.map((name) => `@user:${name}`));

    /** Adds events that all follow the same one. */
    const fork = async (roomId: string, count: number) => {
      const { engine } = test.under;
      const { version, extremities, state } = (await engine.heads.get(roomId))!;
      const prevEventIds = extremities.map(({ eventId }) => eventId);
      const key = SigningKey.generate('k');
      for (let index = 0; index < count; index++) {
        const content = { msgtype: 'm.text', body: `${index}` };
        const draft = { type: 'm.room.message', sender: alice, content, stateKey: undefined };
        const authEventIds = selectAuthEventKeys(draft, version).map((name) => state.get(name)!.eventId);
        const place = { roomId, depth: 50, originServerTs: index, prevEventIds, authEventIds };
        const built = buildEvent({ ...draft, ...place }, version, { serverName: 'test', key });
        await engine.placement.append(roomId, built);
      }
    };

    const missedRooms = async () => {
      const reader = test.under.database.reader<SenderTables>();
      return (await reader.selectFrom('destination_rooms').selectAll().execute()).length;
    };

    const waitsToRetry = (count: number) =>
      until(() => test.sender.status.destinations['waiting to retry'] === count, `${count} waiting`);

    it('sends events of this server, in order, to the servers in the room and no others', async () => {
      const { recipients, say, roomId } = await start(['a.example', 'b.example']);
      const [a, b] = recipients;
      const other = await test.recipient('c.example');
      for (const body of ['1', '2', '3']) await say(body);
      await test.under.say('@user:a.example', roomId, 'of another server');
      await say('4');
      for (const one of [a, b]) await until(() => one.messages.length === 4);
      assert.deepEqual(a.messages, ['1', '2', '3', '4']);
      assert.deepEqual(b.messages, ['1', '2', '3', '4']);
      assert.deepEqual(other.arrived, []);
      const ids = [...a.arrived, ...b.arrived].map(({ id }) => id);
      assert.equal(new Set(ids).size, ids.length);
    });

    it('sends one transaction at a time, of 50 events at most', async () => {
      const { recipients, say } = await start(['a.example']);
      const [a] = recipients;
      let [underWay, most] = [0, 0];
      a.answer = async () => {
        most = Math.max(most, ++underWay);
        await new Promise((resolve) => setTimeout(resolve, 20));
        underWay--;
        return 200;
      };
      const bodies = Array.from({ length: 120 }, (_, index) => String(index));
      await Promise.all(bodies.map(say));
      await until(() => a.messages.length === 120);
      assert.deepEqual(
        a.messages.toSorted((one, other) => Number(one) - Number(other)),
        bodies,
      );
      assert.equal(most, 1);
      assert.ok(a.arrived.every(({ pdus }) => pdus.length <= 50));
      assert.ok(a.arrived.some(({ pdus }) => pdus.length === 50));
    });

    it('does not let a slow server delay the others', async () => {
      const { recipients, say } = await start(['a.example', 'b.example']);
      const [a, b] = recipients;
      let finish = () => {};
      const slow = new Promise<void>((resolve) => {
        finish = resolve;
      });
      a.answer = async () => {
        await slow;
        return 200;
      };
      for (const body of ['1', '2', '3']) {
        await say(body);
        await until(() => b.messages.at(-1) === body);
      }
      assert.ok(a.arrived.length <= 1);
      finish();
      await until(() => a.messages.length === 3);
      assert.deepEqual(a.messages, ['1', '2', '3']);
    });

    it('sends a transaction again as it was until it is taken', async () => {
      const { recipients, say } = await start(['a.example']);
      const [a] = recipients;
      a.answer = () => 502;
      await say('1');
      await waitsToRetry(1);
      await say('2');
      const [first] = a.arrived.slice(-1);
      a.answer = () => 200;
      test.clock.advance(minute);
      await until(() => a.messages.includes('2'));
      const [again, ...later] = a.arrived.slice(a.arrived.indexOf(first!) + 1);
      assert.deepEqual([again?.id, again?.pdus], [first?.id, first?.pdus]);
      assert.ok(later.every(({ id }) => id !== first?.id));
      assert.deepEqual(a.messages, ['1', '1', '2']);
    });

    it('repeats a request a little before it gives a server up [option: federation.max_long_retries]', async () => {
      const { recipients, say } = await start(['a.example'], { federation: { max_long_retries: 2 } });
      const [a] = recipients;
      await until(() => test.sender.status.destinations.sending === 0);
      const before = a.arrived.length;
      a.answer = () => 502;
      await say('1');
      await until(() => {
        test.clock.advance(1_000);
        return test.sender.status.destinations['waiting to retry'] === 1;
      });
      const attempts = a.arrived.slice(before);
      assert.deepEqual([attempts.length, new Set(attempts.map(({ id }) => id)).size], [3, 1]);
    });

    it('does not wait with the next attempt once there is a sign of the server', async () => {
      const { recipients, say } = await start(['a.example'], { federation: { max_long_retries: 2 } });
      const [a] = recipients;
      await until(() => test.sender.status.destinations.sending === 0);
      a.answer = () => 502;
      const before = a.arrived.length;
      await say('1');
      await until(() => a.arrived.length === before + 1);
      a.answer = () => 200;
      // Without a sign it would be more than three seconds.
      let passed = 0;
      await until(async () => {
        await test.client.destinations.reached('a.example');
        if (passed < 2_000) test.clock.advance(100);
        passed += 100;
        return a.messages.filter((body) => body === '1').length === 2;
      });
    });

    it('leaves a server alone for longer each time [option: federation.destination_min_retry_interval, federation.destination_retry_multiplier, federation.destination_max_retry_interval]', async () => {
      const { recipients, say } = await start(['a.example'], {
        federation: {
          max_long_retries: 0,
          destination_min_retry_interval: 10_000,
          destination_retry_multiplier: 20,
          destination_max_retry_interval: 100_000,
        },
      });
      const [a] = recipients;
      await until(() => test.sender.status.destinations.sending === 0);
      a.answer = () => 503;
      await say('1');
      const left = async () => {
        await waitsToRetry(1);
        return (await test.client.destinations.blockedUntil('a.example'))! - test.clock.now();
      };
      assert.equal(await left(), 10_000);
      test.clock.advance(10_000);
      await until(async () => (await left()) > 10_000);
      assert.equal(await left(), 100_000);
    });

    it('catches up with the newest event of each room after an outage, and goes on from there', async () => {
      const { recipients, say } = await start(['a.example']);
      const [a] = recipients;
      const others = [await room('a.example'), await room('a.example')];
      await until(() => test.sender.status.destinations.sending === 0);
      a.answer = () => 503;
      await say('1');
      await waitsToRetry(1);
      const before = a.arrived.length;
      for (const body of ['2', '3', '4']) await say(body);
      for (const roomId of others) {
        await test.under.say(alice, roomId, 'first there');
        await test.under.say(alice, roomId, `last in ${roomId}`);
      }
      await test.sender.caughtUp();
      a.answer = () => 200;
      test.clock.advance(minute);
      await until(() => a.messages.includes(`last in ${others[1]}`));
      const came = a.arrived.slice(before).flatMap(({ pdus }) => bodiesOf(pdus));
      assert.deepEqual(came, ['1', '4', ...others.map((roomId) => `last in ${roomId}`)]);
      await until(() => test.sender.status.destinations['catching up'] === 0);
      await say('5');
      await until(() => a.messages.includes('5'));
      test.clock.advance(minute);
      await until(async () => (await missedRooms()) === 0);
    });

    it('sends the events of others too that lead to its own when it catches up', async () => {
      const { recipients, say, roomId } = await start(['a.example', 'b.example']);
      const [a] = recipients;
      await until(() => test.sender.status.destinations.sending === 0);
      a.answer = () => 503;
      await say('1');
      await waitsToRetry(1);
      await say('2');
      await test.under.say('@user:b.example', roomId, 'of another server');
      await test.sender.caughtUp();
      a.answer = () => 200;
      test.clock.advance(minute);
      await until(() => a.messages.includes('of another server'));
      assert.equal(a.messages.includes('2'), false);
    });

    it('sends all ends of a history to which nothing else leads', async () => {
      const { recipients, roomId } = await start(['a.example']);
      const [a] = recipients;
      await until(() => test.sender.status.destinations.sending === 0);
      a.answer = () => 503;
      await test.under.say(alice, roomId, 'the first that is missed');
      await waitsToRetry(1);
      await fork(roomId, 120);
      await test.sender.caughtUp();
      a.answer = () => 200;
      test.clock.advance(minute);
      await until(() => a.messages.includes('119'));
      const came = a.messages.filter((body) => /^\d+$/.test(body)).map(Number);
      assert.deepEqual(
        came,
        Array.from({ length: 120 }, (_, index) => index),
      );
      assert.ok(a.arrived.every(({ pdus }) => pdus.length <= 50));
      await until(() => test.sender.status.destinations['catching up'] === 0);
    });

    it('tries at once when a server shows that it is back', async () => {
      const { recipients, say } = await start(['a.example']);
      const [a] = recipients;
      a.answer = () => 503;
      await say('1');
      await waitsToRetry(1);
      a.answer = () => 200;
      await test.client.destinations.reached('a.example');
      await until(() => a.arrived.at(-1)?.pdus.length !== 0 && test.sender.status.destinations.sending === 0);
      await until(() => a.messages.filter((body) => body === '1').length === 2);
    });

    it('notes what is lacking to a server that can not keep up', async () => {
      const { recipients, say } = await start(['a.example']);
      const [a] = recipients;
      let finish = () => {};
      const slow = new Promise<void>((resolve) => {
        finish = resolve;
      });
      a.answer = async () => {
        await slow;
        return 200;
      };
      for (let i = 0; i < 12; i++) {
        await Promise.all(Array.from({ length: 50 }, (_, index) => say(`${i}.${index}`)));
      }
      const last = await say('last');
      await test.sender.caughtUp();
      assert.ok(test.sender.status.pendingPdus <= 100);
      assert.equal(test.sender.status.destinations['catching up'], 1);
      finish();
      await until(() => a.messages.includes('last'));
      assert.ok(a.messages.length < 600);
      assert.ok(last);
    });

    it('takes up after a restart what was not delivered', async () => {
      const { recipients, say } = await start(['a.example', 'b.example']);
      const [a, b] = recipients;
      a.answer = () => 503;
      await say('1');
      await waitsToRetry(1);
      await say('2');
      await until(() => b.messages.includes('2') && test.sender.status.destinations.sending === 0);
      await test.restart();
      const toB = b.arrived.length;
      a.answer = () => 200;
      const before = a.arrived.length;
      test.clock.advance(200);
      await waitsToRetry(1);
      test.clock.advance(minute);
      await until(() => a.messages.includes('2'));
      assert.deepEqual(
        a.arrived.slice(before).flatMap(({ pdus }) => bodiesOf(pdus)),
        ['2'],
      );
      assert.equal(b.arrived.length, toB);
    });

    it('takes up after a crash what was not delivered', async () => {
      const { recipients, say } = await start(['a.example', 'b.example']);
      const [a, b] = recipients;
      await until(() => test.sender.status.destinations.sending === 0);
      test.clock.advance(1_000);
      await until(async () => (await missedRooms()) === 0);
      const stuck = new Promise<void>(() => {});
      a.answer = async () => {
        await stuck;
        return 200;
      };
      await say('1');
      await say('2');
      await until(() => b.messages.includes('2') && a.arrived.length > 0);
      const before = a.arrived.length;
      a.answer = () => 200;
      await test.restart(true);
      await until(() =>
        a.arrived
          .slice(before)
          .flatMap(({ pdus }) => bodiesOf(pdus))
          .includes('2'),
      );
      assert.deepEqual(
        a.arrived.slice(before).flatMap(({ pdus }) => bodiesOf(pdus)),
        ['1', '2'],
      );
    });

    it('need not go through everything again after a crash when there was nobody to send to', async () => {
      const { say } = await start([]);
      const first = await test.under.positionOf(await say('1'));
      const cursor = async () => {
        const reader = test.under.database.reader<{ stream_followers: { name: string; position: number } }>();
        return (
          (await reader.selectFrom('stream_followers').select('position').executeTakeFirst())?.position ?? 0
        );
      };
      assert.ok((await cursor()) < first);
      await until(async () => {
        test.clock.advance(1_000);
        await say('more');
        await test.sender.caughtUp();
        return (await cursor()) >= first;
      });
    });

    it('notes what has waited for long, and forgets that when it has arrived', async () => {
      const { recipients, say } = await start(['a.example']);
      const [a] = recipients;
      await until(() => test.sender.status.destinations.sending === 0);
      let finish = () => {};
      const slow = new Promise<void>((resolve) => {
        finish = resolve;
      });
      a.answer = async () => {
        await slow;
        return 200;
      };
      await say('1');
      await until(() => a.messages.includes('1'));
      assert.equal(await missedRooms(), 0);
      await until(async () => {
        test.clock.advance(1_000);
        return (await missedRooms()) === 1;
      });
      finish();
      await until(async () => {
        test.clock.advance(1_000);
        return (await missedRooms()) === 0;
      });
      assert.deepEqual(a.messages, ['1']);
    });

    it('tells the servers of those who are removed from a room, or are invited no more, and nothing after that', async () => {
      const { recipients, say, roomId } = await start(['a.example', 'b.example']);
      const [a, b] = recipients;
      const c = await test.recipient('c.example');
      const { memberships } = test.under.rooms;
      await test.under.rooms.memberships.kick(alice, roomId, '@user:a.example');
      await memberships.invite(alice, roomId, '@user:c.example');
      await memberships.kick(alice, roomId, '@user:c.example');
      await say('not for a and c');
      await until(() => b.messages.length === 1);
      const memberOf = ({ arrived }: Recipient) =>
        arrived.flatMap(({ pdus }) =>
          pdus.flatMap(({ type, state_key: user, content }) =>
            type === 'm.room.member' && user !== alice && user !== '@user:b.example'
              ? `${user} ${(content as JsonObject)['membership']}`
              : [],
          ),
        );
      await until(() => memberOf(c).length > 0 && memberOf(a).includes('@user:a.example leave'));
      assert.deepEqual(memberOf(c), ['@user:c.example leave']);
      assert.deepEqual([a.messages, c.messages], [[], []]);
    });

    it('sends to servers in the room that its server ACL denies: these are kept from sending', async () => {
      const { recipients, say, roomId } = await start(['a.example']);
      const [a] = recipients;
      const acl = { type: 'm.room.server_acl', stateKey: '' };
      const content = { allow: ['*'], deny: ['a.example'] };
      await test.under.rooms.sending.state({ userId: alice, deviceId: 'D' }, roomId, acl, content);
      await say('after');
      await until(() => a.messages.includes('after'));
      assert.ok(a.arrived.some(({ pdus }) => pdus.some(({ type }) => type === 'm.room.server_acl')));
    });

    it('says for how long something has waited', async () => {
      const { recipients, say } = await start(['a.example']);
      const [a] = recipients;
      await until(() => test.sender.status.destinations.sending === 0);
      assert.equal(test.sender.status.longestWait, 0);
      a.answer = () => 503;
      await say('1');
      await waitsToRetry(1);
      test.clock.advance(40_000);
      assert.equal(test.sender.status.longestWait, 40_000);
      a.answer = () => 200;
      test.clock.advance(20_000);
      await until(() => test.sender.status.longestWait === 0);
    });

    it('does not send what came before the first user of a server', async () => {
      const { recipients, say, roomId } = await start(['a.example']);
      const [a] = recipients;
      const b = await test.recipient('b.example');
      const sent = Array.from({ length: 20 }, (_, index) => say(`early ${index}`));
      sent.push(test.under.join('@user:b.example', roomId).then(() => say('late')));
      for (let index = 0; index < 20; index++) sent.push(say(`early too ${index}`));
      await Promise.all(sent);
      await until(() => a.messages.length === 41 && b.messages.includes('late'));
      const joinedAt = b.arrived.flatMap(({ pdus }) => pdus.map(({ depth }) => Number(depth)));
      const join = await test.under.engine.heads.get(roomId);
      const entry = join?.entry('m.room.member', '@user:b.example');
      const joined = await test.under.engine.events.get(entry!.nid);
      assert.ok(joinedAt.every((depth) => depth > joined!.event.depth));
    });

    it('leaves out one event that a server refuses, and no other', async () => {
      const { recipients, say } = await start(['a.example']);
      const [a] = recipients;
      await until(() => test.sender.status.destinations.sending === 0);
      const taken: string[] = [];
      a.answer = ({ pdus }) => {
        const bodies = bodiesOf(pdus);
        if (bodies.includes('bad')) return 400;
        taken.push(...bodies);
        return 200;
      };
      await Promise.all(['1', '2', 'bad', '3', '4', '5'].map(say));
      await until(() => taken.length === 5);
      assert.deepEqual(taken.toSorted(), ['1', '2', '3', '4', '5']);
    });

    it('leaves a server alone that refuses one event after the other, and loses none of those that wait', async () => {
      const { recipients, say } = await start(['a.example']);
      const [a] = recipients;
      await until(() => test.sender.status.destinations.sending === 0);
      a.answer = ({ pdus }) => (pdus.length > 0 ? 400 : 200);
      const bodies = Array.from({ length: 12 }, (_, index) => String(index));
      await Promise.all(bodies.map(say));
      await waitsToRetry(1);
      const asked = a.arrived.length;
      await say('last');
      await test.sender.caughtUp();
      assert.equal(a.arrived.length, asked);
      a.answer = () => 200;
      test.clock.advance(minute);
      await until(() => a.messages.includes('last'));
      await until(() => test.sender.status.destinations['catching up'] === 0);
    });

    it('does not send to servers with which there is no federation [option: federation_domain_whitelist]', async () => {
      const { recipients, say } = await start(['a.example', 'b.example'], {
        federation_domain_whitelist: ['b.example'],
      });
      const [a, b] = recipients;
      await say('1');
      await until(() => b.messages.length === 1);
      assert.deepEqual(a.arrived, []);
    });

    describe('EDUs that must arrive', () => {
      const edu = (number: number) => ({
        type: 'm.direct_to_device',
        content: { message_id: String(number) },
      });
      const add = (...numbers: readonly number[]) =>
        test.under.database.transaction<SenderTables, void>(async (writer) => {
          for (const number of numbers) await test.outbox.add(writer, 'a.example', edu(number));
        });
      const idsIn = ({ arrived }: Recipient) =>
        arrived.flatMap(({ edus }) => edus.map(({ content }) => Number(content['message_id'])));
      const rows = async () => {
        const reader = test.under.database.reader<SenderTables>();
        return (await reader.selectFrom('federation_outbox').selectAll().execute()).length;
      };

      it('are sent in order, 100 at a time, and then forgotten', async () => {
        const { recipients } = await start(['a.example']);
        const [a] = recipients;
        const numbers = Array.from({ length: 250 }, (_, index) => index);
        await add(...numbers);
        await until(async () => (await rows()) === 0);
        assert.deepEqual(idsIn(a), numbers);
        assert.ok(a.arrived.every(({ edus }) => edus.length <= 100));
      });

      it('are part of the transaction that causes them', async () => {
        const { recipients } = await start(['a.example']);
        const [a] = recipients;
        const failing = test.under.database.transaction<SenderTables, void>(async (writer) => {
          await test.outbox.add(writer, 'a.example', edu(1));
          throw new Error('not after all');
        });
        await assert.rejects(failing, /not after all/);
        await add(2);
        await until(() => idsIn(a).length > 0);
        assert.deepEqual(idsIn(a), [2]);
      });

      it('wait for their server, also through a restart', async () => {
        const { recipients } = await start(['a.example']);
        const [a] = recipients;
        await until(() => test.sender.status.destinations.sending === 0);
        a.answer = () => 503;
        await add(1);
        await waitsToRetry(1);
        await add(2);
        await test.restart();
        const before = a.arrived.length;
        await waitsToRetry(1);
        a.answer = () => 200;
        test.clock.advance(minute);
        await until(async () => (await rows()) === 0);
        assert.deepEqual(
          a.arrived.slice(before).flatMap(({ edus }) => edus.map(({ content }) => content['message_id'])),
          ['1', '2'],
        );
      });

      it('come once to a server that has taken them though its answer was lost', async () => {
        const { recipients } = await start(['a.example']);
        const [a] = recipients;
        await until(() => test.sender.status.destinations.sending === 0);
        a.answer = () => 502;
        await add(1);
        await waitsToRetry(1);
        a.answer = () => 200;
        await add(2);
        test.clock.advance(minute);
        await until(async () => (await rows()) === 0);
        const carrying = a.arrived.filter(({ edus }) => edus.length > 0);
        assert.deepEqual(
          carrying.map(({ edus }) => edus.map(({ content }) => content['message_id'])),
          [['1'], ['1'], ['2']],
        );
        assert.equal(carrying[0]?.id, carrying[1]?.id);
      });

      it('are not kept for servers with which there is no federation', async () => {
        await start([], { federation_domain_whitelist: ['b.example'] });
        await add(1);
        assert.equal(await rows(), 0);
      });
    });

    describe('EDUs that are about now', () => {
      const typing = (userId: string, isTyping: boolean) => ({
        type: 'm.typing',
        key: userId,
        lifetime: 30_000,
        content: { user_id: userId, typing: isTyping },
      });
      const contents = ({ arrived }: Recipient) =>
        arrived.flatMap(({ edus }) => edus.map(({ content }) => content));

      it('take the place of earlier ones and go with the events', async () => {
        const { recipients } = await start(['a.example']);
        const [a] = recipients;
        await until(() => test.sender.status.destinations.sending === 0);
        test.sender.sendEdu(['a.example', 'test'], typing(alice, true));
        test.sender.sendEdu(['a.example'], typing('@bob:test', true));
        test.sender.sendEdu(['a.example'], typing(alice, false));
        await until(() => contents(a).length === 2);
        assert.deepEqual(contents(a), [
          { user_id: '@bob:test', typing: true },
          { user_id: alice, typing: false },
        ]);
      });

      const receipt = (roomId: string, eventId: string) => ({
        type: 'm.receipt',
        key: roomId,
        lifetime: 60 * minute,
        content: { [roomId]: { 'm.read': { [alice]: { data: { ts: 1 }, event_ids: [eventId] } } } },
        combine: (contents: readonly JsonObject[]) => [Object.assign({}, ...contents) as JsonObject],
      });

      it('do not wait for what a server has refused', async () => {
        const { recipients, say } = await start(['a.example']);
        const [a] = recipients;
        await until(() => test.sender.status.destinations.sending === 0);
        a.answer = ({ pdus }) => (bodiesOf(pdus).includes('bad') ? 400 : 200);
        await say('bad');
        await until(() => a.messages.includes('bad') && test.sender.status.destinations.sending === 0);
        test.sender.sendEdu(['a.example'], typing(alice, true));
        test.sender.sendEdu(['a.example'], typing('@bob:test', true));
        await until(() => contents(a).length === 2);
        assert.equal(test.sender.status.pendingEdus, 0);
      });

      it('are left out when they are refused, and nothing else is', async () => {
        const { recipients, say } = await start(['a.example']);
        const [a] = recipients;
        await until(() => test.sender.status.destinations.sending === 0);
        const isBad = (content: JsonObject) => content['user_id'] === '@bob:test';
        const [taken, told]: [string[], JsonObject[]] = [[], []];
        a.answer = ({ pdus, edus }) => {
          if (edus.some(({ content }) => isBad(content))) return 400;
          taken.push(...bodiesOf(pdus));
          told.push(...edus.map(({ content }) => content));
          return 200;
        };
        const users = ['@first:test', alice, '@bob:test', '@carol:test', '@dave:test'];
        for (const userId of users) test.sender.sendEdu(['a.example'], typing(userId, true));
        await Promise.all(['1', '2', '3'].map(say));
        await until(() => taken.length === 3 && told.length === 4);
        assert.deepEqual(taken.toSorted(), ['1', '2', '3']);
        assert.deepEqual(told.map((content) => content['user_id']).toSorted(), [
          alice,
          '@carol:test',
          '@dave:test',
          '@first:test',
        ]);
        assert.equal(test.sender.status.pendingEdus, 0);
      });

      it('come after an outage as they are then, if they are still worth it', async () => {
        const { recipients } = await start(['a.example']);
        const [a] = recipients;
        await until(() => test.sender.status.destinations.sending === 0);
        a.answer = () => 503;
        test.sender.sendEdu(['a.example'], receipt('!one:test', '$1'));
        test.sender.sendEdu(['a.example'], receipt('!two:test', '$2'));
        test.sender.sendEdu(['a.example'], typing(alice, true));
        await waitsToRetry(1);
        assert.equal(test.sender.status.pendingEdus, 2, 'nobody types any more when it is tried again');
        const before = a.arrived.length;
        test.sender.sendEdu(['a.example'], receipt('!two:test', '$3'));
        test.sender.sendEdu(['a.example'], receipt('!three:test', '$4'));
        test.sender.sendEdu(['a.example'], typing(alice, true));
        a.answer = () => 200;
        test.clock.advance(minute);
        await until(() => test.sender.status.pendingEdus === 0 && a.arrived.length > before);
        await until(() => a.arrived.slice(before).some(({ edus }) => edus.length > 0));
        const edus = a.arrived.slice(before).flatMap((transaction) => transaction.edus);
        const all = [
          receipt('!one:test', '$1').content,
          receipt('!two:test', '$3').content,
          receipt('!three:test', '$4').content,
        ];
        assert.deepEqual(edus, [{ edu_type: 'm.receipt', content: Object.assign({}, ...all) as JsonObject }]);
      });

      it('do not wait in any number for servers that stay away', async () => {
        const { recipients } = await start(['a.example'], {
          federation: { max_long_retries: 0, destination_min_retry_interval: 50 * minute },
        });
        const [a] = recipients;
        await until(() => test.sender.status.destinations.sending === 0);
        a.answer = () => 503;
        test.sender.sendEdu(['a.example'], receipt('!0:test', '$0'));
        await waitsToRetry(1);
        for (let i = 0; i < 600; i++) test.sender.sendEdu(['a.example'], receipt(`!${i}:test`, '$1'));
        assert.equal(test.sender.status.pendingEdus, 500);
        const before = a.arrived.length;
        test.clock.advance(50 * minute);
        await until(() => a.arrived.length > before);
        await waitsToRetry(1);
        assert.equal(test.sender.status.pendingEdus, 0, 'the next attempt is later than they are of use');
        test.sender.sendEdu(['a.example'], receipt('!late:test', '$1'));
        assert.equal(test.sender.status.pendingEdus, 0);
      });

      it('are not sent when they are stale, nor to servers that were not there', async () => {
        const { recipients, say } = await start(['a.example', 'b.example']);
        const [a, b] = recipients;
        await until(() => test.sender.status.destinations.sending === 0);
        a.answer = () => 503;
        await say('1');
        await waitsToRetry(1);
        test.sender.sendEdu(['a.example'], typing(alice, true));
        test.sender.sendEdu(['b.example'], typing(alice, true), { lazy: true });
        test.clock.advance(50);
        a.answer = () => 200;
        test.clock.advance(minute);
        await until(() => a.messages.filter((body) => body === '1').length === 2);
        await say('2');
        await until(() => a.messages.includes('2') && b.messages.includes('2'));
        assert.deepEqual([contents(a), contents(b)], [[], []]);
      });
    });
  });
});

const bodiesOf = (pdus: readonly JsonObject[]): string[] =>
  pdus.flatMap(({ type, content }) =>
    type === 'm.room.message' ? String((content as JsonObject)['body']) : [],
  );

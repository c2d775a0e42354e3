import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { forSelectedDatabases } from '../../support/databases/databases.ts';
import { until } from '../../support/other-servers/federation-sender.ts';
import { enc, type TestClient } from '../../support/users/test-client.ts';
import { bodies, lazy, ResidentRooms } from './resident-rooms.ts';

forSelectedDatabases(import.meta.url, ({ kind }) => {
  describe('a room that was joined without members, with a resident server that serves states only at events that it has made or accepted', () => {
    let residents: ResidentRooms;
    let anna: TestClient;
    before(async () => {
      residents = await ResidentRooms.start(kind);
      anna = residents.anna;
    });
    after(() => residents.stop());

    it('requests the state at the previous event of the join from the server that answered the join', async () => {
      const { resident, charlie, derek, join, members } = await residents.open();
      const last = [...resident.room.events.keys()].at(-1)!;
      await join();
      assert.deepEqual(await members(), [anna.id, charlie, resident.room.creator, derek].sort());
      const requestedStates = resident.requestedStates();
      assert.deepEqual(
        [requestedStates[0], requestedStates.length <= 2],
        [`state_ids ${last}`, true],
        requestedStates.join(),
      );
      for (const request of requestedStates) assert.ok(request.endsWith(last), request);
      assert.deepEqual(resident.requestsTo('event_auth'), []);
    });

    it('does not send the join as a PDU to the server that accepted it', async () => {
      const { resident, join, members } = await residents.open();
      await join();
      await anna.say(resident.room.roomId, 'hello');
      await until(() => resident.received.length > 0);
      assert.deepEqual(
        resident.received.map(({ type }) => type),
        ['m.room.message'],
      );
      await members();
    });

    it('requests the state at the missing previous event of a gap that get_missing_events does not close', async () => {
      const { resident, path, join, members, messages } = await residents.open();
      await join();
      await members();
      resident.say('lost');
      const topic = resident.setState('m.room.topic', { topic: 'missed' });
      const missing = resident.say('missing previous event');
      const between = resident.say('between');
      const last = resident.say('last');
      resident.missing = [between];
      const earlierRequests = resident.server.receivedRequests.length;
      await resident.send(last);
      await until(async () => (await messages()).includes('last'));
      assert.ok((await messages()).includes('between'));
      assert.equal((await anna.do('GET', `${path}/state/m.room.topic`))['topic'], 'missed');
      const endpoints = resident.server.receivedRequests
        .slice(earlierRequests)
        .filter(({ path }) => !path.includes('/backfill/'))
        .map(({ path, query }) => `${path.split('/')[4]} ${query.get('event_id') ?? path.split('/')[5]}`);
      assert.deepEqual(
        endpoints.toSorted(),
        [
          `event ${topic.event.eventId}`,
          `event ${missing.event.eventId}`,
          `get_missing_events ${resident.room.roomId}`,
          `state_ids ${missing.event.eventId}`,
        ].sort(),
      );
    });

    it('after a leave and a second join while the members are unknown, accepts a message that refers to an event from before the leave', async () => {
      const { resident, roomId, path, charlie, derek, join, members, messages } = await residents.open();
      const release = resident.holdState();
      await join();
      const first = resident.say('first', charlie);
      await resident.send(first);
      await until(async () => {
        const { rooms } = await anna.sync(undefined, { filter: lazy });
        return bodies(rooms?.join?.[roomId]).includes('first');
      });
      await anna.do('POST', `${path}/leave`, {});
      await until(() => resident.received.some(({ content }) => content['membership'] === 'leave'));
      resident.accept(resident.received.at(-1)!);
      await join();
      release();
      assert.deepEqual(await members(), [anna.id, charlie, resident.room.creator, derek].sort());
      await resident.send(resident.merge('late', first));
      await until(async () => (await messages()).includes('late'));
    });

    it('places an event with one missing previous event, and corrects the state of the event when the room is complete', async () => {
      const { resident, path, charlie, derek, join, members, messages } = await residents.open();
      const release = resident.holdState();
      await join();
      const messageOfCharlie = resident.say('known', charlie);
      await resident.send(messageOfCharlie);
      await until(async () => (await messages()).includes('known'));
      resident.room.backTo({ event: resident.joins.at(-1)! });
      const missing = resident.setState('m.room.topic', { topic: 'missed' });
      const merge = resident.merge('merge', messageOfCharlie, missing);
      await resident.send(merge);
      release();
      await until(async () => (await messages()).includes('merge'));
      assert.deepEqual(await members(), [anna.id, charlie, resident.room.creator, derek].sort());
      assert.equal((await anna.do('GET', `${path}/state/m.room.topic`))['topic'], 'missed');
      const { state } = await anna.do('GET', `${path}/context/${enc(merge.event.eventId)}`);
      const inState = (state as { type: string; state_key: string }[])
        .filter(({ type }) => type === 'm.room.member')
        .map(({ state_key: key }) => key);
      assert.deepEqual(inState.sort(), [anna.id, charlie, resident.room.creator, derek].sort());
    });

    it('accepts typing notifications, receipts and to-device messages of members that are not known', async () => {
      const { resident, roomId, charlie, derek, join, members } = await residents.open();
      const release = resident.holdState();
      await join();
      const { next_batch: since } = await anna.sync(undefined, { filter: lazy });
      const eventId = await anna.say(roomId, 'read this');
      await resident.sendEdu('m.typing', { room_id: roomId, user_id: charlie, typing: true });
      const receipt = { event_ids: [eventId], data: { ts: 1 } };
      await resident.sendEdu('m.receipt', { [roomId]: { 'm.read': { [derek]: receipt } } });
      await resident.sendEdu('m.direct_to_device', {
        sender: derek,
        type: 'm.test',
        message_id: 'one',
        messages: { [anna.id]: { '*': { text: 'hello' } } },
      });
      await until(async () => {
        const answer: { to_device?: { events?: unknown[] } } & Awaited<ReturnType<TestClient['sync']>> =
          await anna.sync(since, { filter: lazy });
        const { rooms, to_device: toDevice } = answer;
        const ephemeral = JSON.stringify(rooms?.join?.[roomId]?.ephemeral ?? {});
        return ephemeral.includes(charlie) && ephemeral.includes(derek) && toDevice?.events?.length === 1;
      });
      release();
      await members();
    });

    it('accepts device list and signing key updates of members that are not known yet', async () => {
      const { resident, derek, join, members } = await residents.open();
      const release = resident.holdState();
      await join();
      const since = (await anna.sync(undefined, { filter: lazy })).next_batch;
      await resident.sendEdu('m.device_list_update', {
        user_id: derek,
        device_id: 'NEW',
        stream_id: 2,
        prev_id: [1],
        keys: { user_id: derek, device_id: 'NEW', algorithms: [], keys: {}, signatures: {} },
      });
      await resident.sendEdu('m.signing_key_update', {
        user_id: derek,
        master_key: { user_id: derek, usage: ['master'], keys: { 'ed25519:abc': 'abc' } },
      });
      release();
      await members();
      await until(async () => {
        const answer: { device_lists?: { changed?: string[] } } & object = await anna.sync(since, {
          filter: lazy,
        });
        return answer.device_lists?.changed?.includes(derek) === true;
      });
    });
  });
});

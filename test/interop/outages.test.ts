import assert from 'node:assert/strict';
import { eventually } from '../clients/eventually.ts';
import type { ControlledHomeserver } from './interop-network.ts';
import { InteropSuite } from './interop-suite.ts';
import { enc, type InteropUser, type Json } from './interop-user.ts';

/** Number of messages that a user sends in a room during an outage: more than one get_missing_events response has. */
const count = 20;

/** Lets all users change the topic and other state. */
const freeTopic = { power_level_content_override: { state_default: 0 } };

InteropSuite.onOwnServers('outages', (suite) => {
  /** Returns a room on each server. In both rooms, each user has received a message of the other user. */
  async function sharedRooms(first: InteropUser, second: InteropUser): Promise<string[]> {
    const rooms = [
      await first.createRoomWith([second], freeTopic),
      await second.createRoomWith([first], freeTopic),
    ];
    for (const room of rooms) {
      for (const user of [first, second]) {
        const eventId = await user.say(room, 'hello');
        await Promise.all([first.waitForEvent(room, eventId), second.waitForEvent(room, eventId)]);
      }
    }
    return rooms;
  }

  async function sendMany(user: InteropUser, room: string): Promise<string[]> {
    const eventIds: string[] = [];
    for (let i = 0; i < count; i++) eventIds.push(await user.say(room, `${i}`));
    eventIds.push(await user.setState(room, 'm.room.topic', { topic: 'while you were away' }));
    return eventIds;
  }

  const terminate = {
    stopped: (server: ControlledHomeserver) => server.stop(),
    killed: (server: ControlledHomeserver) => server.kill(),
  };
  for (const [serverName, terminations, participants] of [
    [
      'Hearth',
      ['stopped', 'killed'],
      () => ({
        downUser: suite.onHearth.first,
        upUser: suite.onReference.first,
        server: suite.servers.hearth,
      }),
    ],
    [
      'the reference server',
      ['killed'],
      () => ({
        downUser: suite.onReference.first,
        upUser: suite.onHearth.first,
        server: suite.servers.reference,
      }),
    ],
  ] as const) {
    for (const termination of terminations) {
      suite.scenario(
        `delivers missed and pending events after ${serverName} was ${termination}`,
        async () => {
          const { downUser, upUser, server } = participants();
          const rooms = await sharedRooms(upUser, downUser);
          const pending = await Promise.all(rooms.map((room) => downUser.say(room, 'before the outage')));
          await terminate[termination](server);
          const missed = await Promise.all(rooms.map((room) => sendMany(upUser, room)));
          await server.start();
          for (const [index, room] of rooms.entries()) {
            // The restarted server receives the missed events at the latest with the next event, and then sends its own
            // events.
            const next = await upUser.say(room, 'after the outage');
            await downUser.waitForEvent(room, next);
            await downUser.waitForHistory(room, [...missed[index]!, next]);
            const answer = await downUser.say(room, 'answer');
            await upUser.waitForEvent(room, answer);
            await upUser.waitForHistory(room, [pending[index]!, answer]);
          }
        },
      );
    }

    suite.scenario(`loses no acknowledged event when ${serverName} is killed during sends`, async () => {
      const { downUser, upUser, server } = participants();
      const [room] = await sharedRooms(upUser, downUser);
      const eventIds: string[] = [];
      let restarted: Promise<void> | undefined;
      const sending = [downUser, upUser].map(async (user) => {
        for (let number = 0; number < count; number++) {
          try {
            eventIds.push(await user.say(room!, `${number}`));
          } catch (error) {
            // A send that was not acknowledged before the kill may be lost.
            if (user === upUser || !(error instanceof TypeError) || !restarted) throw error;
            await restarted;
          }
        }
      });
      await eventually('messages to be sent', () => eventIds.length >= count / 2);
      restarted = server.kill().then(() => server.start());
      await Promise.all([restarted, ...sending]);
      for (const user of [downUser, upUser]) {
        eventIds.push(await user.say(room!, 'after the kill'));
        await Promise.all([
          downUser.waitForEvent(room!, eventIds.at(-1)!),
          upUser.waitForEvent(room!, eventIds.at(-1)!),
        ]);
      }
      for (const user of [downUser, upUser]) await user.waitForHistory(room!, eventIds);
    });
  }

  suite.scenario(
    'Hearth delivers after a restart the events that it was retrying when it was stopped',
    async () => {
      const { hearth, reference } = suite.servers;
      const [sender, receiver] = [suite.onHearth.first, suite.onReference.first];
      const [room] = await sharedRooms(sender, receiver);
      await reference.kill();
      const eventIds = [await sender.say(room!, 'while the other server is down')];
      reference.proxy.disconnect();
      await eventually('two attempts', () => reference.proxy.refusedConnections >= 2);
      eventIds.push(await sender.say(room!, 'before the stop'));
      await hearth.stop();
      reference.proxy.reconnect();
      await reference.start();
      await hearth.start();
      // The pending events arrive although no further event is sent.
      for (const eventId of eventIds) await receiver.waitForEvent(room!, eventId);
    },
  );

  suite.scenario(
    'Hearth completes after a restart the state of a room that it had just joined when both servers were stopped',
    async () => {
      const { hearth, reference } = suite.servers;
      const { first: host, second: other } = suite.onReference;
      const guest = suite.onHearth.first;
      const banned = Array.from({ length: 30 }, (_, index) => ({
        type: 'm.room.member',
        state_key: `@banned-${index}:${reference.name}`,
        content: { membership: 'ban' },
      }));
      const room = await host.createRoom({ initial_state: banned });
      await other.join(room, reference);
      await guest.join(room, reference);
      await reference.kill();
      reference.proxy.disconnect();
      const eventId = await guest.say(room, 'to a server that is down');
      await eventually('an attempt', () => reference.proxy.refusedConnections >= 1);
      await hearth.stop();
      reference.proxy.reconnect();
      await reference.start();
      await hearth.start();
      await host.waitForEvent(room, eventId);
      const { joined } = await guest.do('GET', `/rooms/${enc(room)}/joined_members`);
      assert.deepEqual(Object.keys(joined as Json).sort(), [guest.id, host.id, other.id].sort());
    },
  );
});

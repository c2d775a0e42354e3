import { eventually } from '../clients/eventually.ts';
import { Meeting } from './meeting.ts';
import type { RunningMember } from './network.ts';
import type { Someone } from './someone.ts';

/** Messages that are said in each room while a server is away: more than a server asks for at once. */
const count = 20;

/** Anybody may change the topic. */
const forAll = { power_level_content_override: { state_default: 0 } };

Meeting.ofItsOwn('outages', (meeting) => {
  /** A room of each, in which both have heard of each other. */
  async function sharedRooms(one: Someone, other: Someone): Promise<string[]> {
    const rooms = [await one.roomWith([other], forAll), await other.roomWith([one], forAll)];
    for (const room of rooms) {
      for (const person of [one, other]) {
        const said = await person.say(room, 'hello');
        await Promise.all([one.sees(room, said), other.sees(room, said)]);
      }
    }
    return rooms;
  }

  async function talk(person: Someone, room: string): Promise<string[]> {
    const said: string[] = [];
    for (let i = 0; i < count; i++) said.push(await person.say(room, `${i}`));
    said.push(await person.set(room, 'm.room.topic', { topic: 'while you were away' }));
    return said;
  }

  const ends = {
    stopped: (server: RunningMember) => server.stop(),
    killed: (server: RunningMember) => server.kill(),
  };
  for (const [title, hows, sides] of [
    [
      'Hearth',
      ['stopped', 'killed'],
      () => ({ away: meeting.here.one, present: meeting.there.one, server: meeting.servers.hearth }),
    ],
    [
      'the other server',
      ['killed'],
      () => ({ away: meeting.there.one, present: meeting.here.one, server: meeting.servers.reference }),
    ],
  ] as const) {
    for (const how of hows) {
      meeting.scenario(`${title} is ${how}, gets what it missed, and sends what it had to send`, async () => {
        const { away, present, server } = sides();
        const rooms = await sharedRooms(present, away);
        const unsent = await Promise.all(rooms.map((room) => away.say(room, 'just before the end')));
        await ends[how](server);
        const missed = await Promise.all(rooms.map((room) => talk(present, room)));
        await server.start();
        for (const [index, room] of rooms.entries()) {
          // Who was away is told of the rest with the next event at the latest, and tells with its own.
          const next = await present.say(room, 'are you back?');
          await away.sees(room, next);
          await away.reads(room, [...missed[index]!, next]);
          const answer = await away.say(room, 'I am');
          await present.sees(room, answer);
          await present.reads(room, [unsent[index]!, answer]);
        }
      });
    }

    meeting.scenario(
      `${title} is killed in the middle of talking, and nothing that was said is lost`,
      async () => {
        const { away, present, server } = sides();
        const [room] = await sharedRooms(present, away);
        const said: string[] = [];
        let back: Promise<void> | undefined;
        const talking = [away, present].map(async (person) => {
          for (let number = 0; number < count; number++) {
            try {
              said.push(await person.say(room!, `${number}`));
            } catch (error) {
              // What the server has not acknowledged before it died may be lost, and nothing else.
              if (person === present || !(error instanceof TypeError) || !back) throw error;
              await back;
            }
          }
        });
        await eventually('them to talk', () => said.length >= count / 2);
        back = server.kill().then(() => server.start());
        await Promise.all([back, ...talking]);
        for (const person of [away, present]) {
          said.push(await person.say(room!, 'the last word'));
          await Promise.all([away.sees(room!, said.at(-1)!), present.sees(room!, said.at(-1)!)]);
        }
        for (const person of [away, present]) await person.reads(room!, said);
      },
    );
  }
});

import assert from 'node:assert/strict';
import { eventually } from '../clients/eventually.ts';
import { Meeting } from './meeting.ts';
import { enc, type Json, type Someone } from './someone.ts';

Meeting.of('messages', ({ bothWays }) => {
  bothWays('messages keep their order, however many at once', async ({ host, guest }) => {
    const room = await host.roomWith([guest]);
    const said: string[] = [];
    for (let i = 0; i < 40; i++) said.push(await host.say(room, `${i}`));
    await guest.sees(room, said.at(-1)!);
    await guest.reads(room, said);
    const seen = (await guest.messages(room))
      .map((event) => event['event_id'])
      .filter((id) => said.includes(id as string));
    assert.deepEqual(seen.reverse(), said);
  });

  bothWays('both talk at the same time, and end with the same state', async ({ host, guest }) => {
    const room = await host.roomWith([guest]);
    await host.setLevels(room, { [guest.id]: 50 });
    await guest.seesLevel(room, guest, 50);
    const talk = async (person: Someone) => {
      const said: string[] = [];
      for (let i = 0; i < 15; i++) {
        said.push(await person.say(room, `${person.id} ${i}`));
        said.push(await person.set(room, 'm.room.topic', { topic: `${person.id} ${i}` }));
      }
      return said;
    };
    const said = (await Promise.all([talk(host), talk(guest)])).flat();
    for (const person of [host, guest]) for (const id of said) await person.sees(room, id);
    // The next event brings together what has gone apart.
    for (const person of [host, guest]) {
      const last = await person.say(room, 'after all that');
      await Promise.all([host.sees(room, last), guest.sees(room, last)]);
    }
  });

  bothWays('messages are redacted', async ({ host, guest }) => {
    const room = await host.roomWith([guest]);
    const own = await guest.say(room, 'a mistake');
    await host.sees(room, own);
    await guest.redact(room, own);
    const others = await guest.say(room, 'an insult');
    await host.sees(room, others);
    await host.redact(room, others);
    for (const person of [host, guest]) {
      for (const id of [own, others]) {
        await eventually(`${id} to be empty for ${person.id}`, async () => {
          const { content } = await person.do('GET', `/rooms/${enc(room)}/event/${enc(id)}`);
          return Object.keys(content as Json).length === 0;
        });
      }
    }
    const forbidden = await host.say(room, "the host's own");
    await guest.sees(room, forbidden);
    const path = `/rooms/${enc(room)}/redact/${enc(forbidden)}/no`;
    assert.equal((await guest.call('PUT', path)).status, 403);
  });

  bothWays('what is redacted of the state is empty for both', async ({ host, guest }) => {
    const room = await host.roomWith([guest]);
    const topic = await host.set(room, 'm.room.topic', { topic: 'a slip' });
    await guest.sees(room, topic);
    await host.redact(room, topic);
    await eventually('the topic to be empty', async () => {
      const content = (await guest.state(room)).get('m.room.topic|')?.['content'];
      return Object.keys(content as Json).length === 0;
    });
  });

  bothWays('reactions, edits and threads arrive as what they are', async ({ host, guest }) => {
    const room = await host.roomWith([guest]);
    const root = await host.say(room, 'root');
    await guest.sees(room, root);
    const relate = (rel_type: string, event_id: string, more: Json = {}) => ({
      'm.relates_to': { rel_type, event_id, ...more },
    });
    const text = { msgtype: 'm.text', body: 'reply' };
    await guest.send(room, 'm.reaction', relate('m.annotation', root, { key: '👍' }));
    const reply = await guest.send(room, 'm.room.message', { ...text, ...relate('m.thread', root) });
    const edited = { ...text, body: 'better' };
    await guest.send(room, 'm.room.message', {
      ...edited,
      'm.new_content': edited,
      ...relate('m.replace', reply),
    });
    const relations = async (eventId: string) => {
      const { status, body } = await host.call('GET', `/rooms/${enc(room)}/event/${enc(eventId)}`);
      const unsigned = (status === 200 ? body['unsigned'] : undefined) as Json | undefined;
      return unsigned?.['m.relations'] as Record<string, Json> | undefined;
    };
    await eventually('the thread', async () => (await relations(root))?.['m.thread']?.['count'] === 1);
    await eventually('the edit', async () => (await relations(reply))?.['m.replace'] !== undefined);
    const reactions = `/_matrix/client/v1/rooms/${enc(room)}/relations/${enc(root)}/m.annotation`;
    const { chunk } = (await host.do('GET', reactions)) as { chunk: Json[] };
    assert.deepEqual(
      chunk.map(({ sender }) => sender),
      [guest.id],
    );
  });
});

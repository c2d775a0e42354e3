import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { forEachDatabase } from '../../../test/support/databases/databases.ts';
import { alice, bob, carol } from '../../../test/support/rooms/rooms.ts';
import { openUnread, unreadOver } from '../test/unread-under-test.ts';

type Setting = Awaited<ReturnType<typeof openUnread>>;

interface Step {
  readonly what: 'say' | 'mention' | 'reply' | 'react' | 'redact' | 'read' | 'rejoin' | 'ask';
  readonly who: string;
  /** Chooses among the events that were sent. */
  readonly pick: number;
  readonly threaded: boolean;
}

const script = fc.array(
  fc.record<Step>({
    what: fc.constantFrom(
      'say',
      'say',
      'mention',
      'reply',
      'react',
      'redact',
      'read',
      'rejoin',
      'ask',
      'ask',
    ),
    who: fc.constantFrom(alice, alice, bob, carol),
    pick: fc.nat(1000),
    threaded: fc.boolean(),
  }),
  { minLength: 10, maxLength: 40 },
);

async function play({ under, counts, read }: Setting, roomId: string, steps: readonly Step[]): Promise<void> {
  const sent: { id: string; root: string | undefined; sender: string }[] = [];
  const send = async (sender: string, id: Promise<string>, root?: string) => {
    sent.push({ id: await id, root, sender });
  };
  for (const { what, who, pick, threaded } of steps) {
    const target = sent[pick % Math.max(1, sent.length)];
    const mentions = { 'm.mentions': { user_ids: [bob, carol] } };
    if (what === 'ask') await counts(who, roomId);
    else if (what === 'say') await send(who, under.say(who, roomId, 'x'));
    else if (what === 'mention') await send(who, under.say(who, roomId, 'x', mentions));
    else if (what === 'rejoin' && who !== alice) {
      await under.leave(who, roomId);
      await under.join(who, roomId);
    } else if (!target) continue;
    else if (what === 'reply' && !target.root) {
      await send(who, under.reply(who, roomId, target.id), target.id);
    } else if (what === 'react') {
      const relation = { rel_type: 'm.annotation', event_id: target.id, key: '+' };
      await under.send(who, roomId, 'm.reaction', { 'm.relates_to': relation });
    } else if (what === 'redact') await under.redact(target.sender, roomId, target.id);
    else if (what === 'read') {
      await read(who, roomId, target.id, threaded ? (target.root ?? 'main') : undefined).catch(
        ignoreForbidden,
      );
    }
  }
}

/** Ignores the error for events from before a join that the user may not see. */
function ignoreForbidden(error: unknown): void {
  if ((error as { errcode?: string }).errcode !== 'M_FORBIDDEN') throw error;
}

forEachDatabase((open) => {
  describe('unread counts', () => {
    it('do not depend on the times of the requests', async () => {
      const setting = await openUnread(open);
      await fc.assert(
        fc.asyncProperty(script, async (steps) => {
          const roomId = await setting.under.room(alice, bob, carol);
          await play(setting, roomId, steps);
          const fresh = unreadOver(setting.under);
          for (const userId of [alice, bob, carol]) {
            assert.equal(await setting.counts(userId, roomId), await fresh.counts(userId, roomId));
          }
        }),
        { numRuns: 25 },
      );
    });
  });
});

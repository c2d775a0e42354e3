import assert from 'node:assert/strict';
import { it } from 'node:test';
import { FollowedCompletion } from './followed-completion.ts';

/** Creates a `FollowedCompletion` over rooms whose heads are read when the test resolves `reads`. */
function openCompletion() {
  const listeners: ((fact: { roomId: string; end: undefined }) => void)[] = [];
  const removalListeners: ((removal: { kind: 'purged'; roomId: string }) => void)[] = [];
  const reads: PromiseWithResolvers<{ lacksMembers: boolean } | undefined>[] = [];
  const completion = new FollowedCompletion({
    stream: { subscribe: (listener: never) => listeners.push(listener) },
    removals: { subscribe: (listener: never) => removalListeners.push(listener) },
    heads: {
      get: () => {
        reads.push(Promise.withResolvers());
        return reads.at(-1)?.promise;
      },
    },
  } as never);
  const complete = () => listeners[0]?.({ roomId: '!r', end: undefined });
  const purge = () => removalListeners[0]?.({ kind: 'purged', roomId: '!r' });
  return { completion, reads, complete, purge };
}

const nextTurn = () => new Promise<void>((resolve) => setImmediate(resolve));

it('FollowedCompletion resolves for a room whose state is completed while its head is being read', async () => {
  const { completion, reads, complete } = openCompletion();
  const completed = completion.whenMembersKnown('!r');
  complete();
  reads[0]?.resolve({ lacksMembers: true });
  await nextTurn();
  reads[1]?.resolve({ lacksMembers: false });
  await completed;
  assert.equal(reads.length, 2);
});

it('FollowedCompletion resolves when a room with partial state is deleted', async () => {
  const { completion, reads, purge } = openCompletion();
  const completed = completion.whenMembersKnown('!r');
  reads[0]?.resolve({ lacksMembers: true });
  await nextTurn();
  purge();
  await nextTurn();
  reads[1]?.resolve(undefined);
  await completed;
  assert.equal(reads.length, 2);
});

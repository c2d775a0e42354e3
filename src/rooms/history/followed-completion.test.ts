import assert from 'node:assert/strict';
import { it } from 'node:test';
import { FollowedCompletion } from './followed-completion.ts';

/** Opens rooms whose heads arrive when the test says so. */
function open() {
  const listeners: ((fact: { roomId: string; end: undefined }) => void)[] = [];
  const purged: ((removal: { kind: 'purged'; roomId: string }) => void)[] = [];
  const reads: PromiseWithResolvers<{ isPartial: boolean }>[] = [];
  const completion = new FollowedCompletion({
    stream: { subscribe: (listener: never) => listeners.push(listener) },
    removals: { subscribe: (listener: never) => purged.push(listener) },
    heads: {
      get: () => {
        reads.push(Promise.withResolvers());
        return reads.at(-1)?.promise;
      },
    },
  } as never);
  const complete = () => listeners[0]?.({ roomId: '!r', end: undefined });
  const purge = () => purged[0]?.({ kind: 'purged', roomId: '!r' });
  return { completion, reads, complete, purge };
}

const turn = () => new Promise<void>((resolve) => setImmediate(resolve));

it('FollowedCompletion resolves for a room whose state is completed while its head is being read', async () => {
  const { completion, reads, complete } = open();
  const done = completion.whenComplete('!r');
  complete();
  reads[0]?.resolve({ isPartial: true });
  await turn();
  reads[1]?.resolve({ isPartial: false });
  await done;
  assert.equal(reads.length, 2);
});

it('FollowedCompletion resolves when a room with partial state is deleted', async () => {
  const { completion, reads, purge } = open();
  const done = completion.whenComplete('!r');
  reads[0]?.resolve({ isPartial: true });
  await turn();
  purge();
  await turn();
  reads[1]?.resolve({ isPartial: false });
  await done;
});

import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { JobAttempt, JobHandler } from '../../kernel/jobs/index.ts';
import type { JsonObject } from '../../protocol/index.ts';
import { UserRedaction, type UserRedactionDeps } from './user-redaction.ts';

test('writes the progress of a redaction once, not after each of 10,000 rooms without events of the user', async () => {
  const handlers: JobHandler<JsonObject>[] = [];
  const jobs = { register: (_kind: string, handler: JobHandler<JsonObject>) => void handlers.push(handler) };
  const rooms = { engine: { heads: { get: async () => undefined } } };
  new UserRedaction({ jobs, rooms } as unknown as UserRedactionDeps);
  const written: JsonObject[] = [];
  const attempt: Partial<JobAttempt<JsonObject>> = {
    payload: {
      userId: '@user:test',
      redactor: '@user:test',
      reason: null,
      limit: 1_000,
      sentFrom: null,
      sentUntil: null,
      before: null,
      considered: 0,
      counts: null,
      failed: {},
      roomIds: Array.from({ length: 10_000 }, (_, index) => `!unknown${index}:test`),
    },
    signal: new AbortController().signal,
    progress: async (payload) => void written.push(payload),
  };
  const result = (await handlers[0]!.run(attempt as JobAttempt<JsonObject>)) as JsonObject;
  assert.deepEqual(result['roomIds'], []);
  assert.equal(written.length, 1);
});

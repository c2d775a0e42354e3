import assert from 'node:assert/strict';
import type { ScriptedServer } from '../support/other-servers/scripted-server.ts';

/** A promise of the response to a request of another server. */
export type PendingAnswer = ReturnType<ScriptedServer['request']>;

/** Asserts the status and the error code of a response. @param what explains a failure */
export async function assertError(
  answer: PendingAnswer,
  status: number,
  errcode: string,
  what = '',
): Promise<void> {
  const { status: actual, body } = await answer;
  assert.deepEqual([actual, body['errcode']], [status, errcode], what + JSON.stringify(body));
}

import assert from 'node:assert/strict';
import {
  CryptoEvent,
  type ShowSasCallbacks,
  VerificationPhase,
  type VerificationRequest,
  type Verifier,
  VerifierEvent,
} from 'matrix-js-sdk/lib/crypto-api/index.js';
import { VerificationMethod } from 'matrix-js-sdk/lib/types.js';
import { eventually, within } from '../eventually.ts';
import type { EncryptedSession } from './encrypted-session.ts';

/** Resolves with the next verification request that reaches the client. */
export function nextVerificationRequest(session: EncryptedSession): Promise<VerificationRequest> {
  const received = new Promise<VerificationRequest>((resolve) =>
    session.client.once(CryptoEvent.VerificationRequestReceived, resolve),
  );
  const inTime = within(`a verification request to reach ${session.userId}`, received);
  // The caller can fail before it waits for the request.
  inTime.catch(() => undefined);
  return inTime;
}

/**
 * Runs an emoji verification as two users do who compare their screens: one accepts the request, the other
 * starts SAS, both see the same emojis, and both confirm. Every wait has a timeout, for two reasons: to report an
 * error, and to keep the verification in memory. The library refers to verifications weakly, so without a timer that
 * refers to this function the garbage collector could remove a running verification, and the wait would never end.
 */
export async function compareEmojis(sent: VerificationRequest, received: VerificationRequest): Promise<void> {
  await received.accept();
  await waitForPhase(sent, VerificationPhase.Ready);
  const verifier = await sent.startVerification(VerificationMethod.Sas);
  const shown = sasCallbacks(verifier);
  const done = verifier.verify();
  const otherVerifier = await eventually('the other side to see the chosen method', () => received.verifier);
  const otherShown = sasCallbacks(otherVerifier);
  const otherDone = otherVerifier.verify();
  const [sas, otherSas] = await within('both sides to show emojis', Promise.all([shown, otherShown]));
  assert.equal(sas.sas.emoji?.length, 7);
  assert.deepEqual(sas.sas.emoji, otherSas.sas.emoji);
  const confirmed = Promise.all([sas.confirm(), otherSas.confirm(), done, otherDone]);
  await within('both sides to verify each other', confirmed);
  await Promise.all([
    waitForPhase(sent, VerificationPhase.Done),
    waitForPhase(received, VerificationPhase.Done),
  ]);
}

function waitForPhase(request: VerificationRequest, expected: VerificationPhase): Promise<boolean> {
  return eventually(`phase ${expected} of a verification`, () => {
    assert.notEqual(request.phase, VerificationPhase.Cancelled, `cancelled: ${request.cancellationCode}`);
    return request.phase === expected;
  });
}

function sasCallbacks(verifier: Verifier): Promise<ShowSasCallbacks> {
  return new Promise((resolve, reject) => {
    const shown = verifier.getShowSasCallbacks();
    if (shown) return resolve(shown);
    verifier.once(VerifierEvent.ShowSas, resolve);
    verifier.once(VerifierEvent.Cancel, reject);
  });
}

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
import { eventually } from '../eventually.ts';
import type { EncryptedSession } from './encrypted-session.ts';

/** The next request to verify that reaches a client. */
export function nextRequest(session: EncryptedSession): Promise<VerificationRequest> {
  return new Promise((resolve) => session.client.once(CryptoEvent.VerificationRequestReceived, resolve));
}

/**
 * Goes through a verification as two people do it who look at each other's screens: one accepts the request, the
 * other chooses to compare pictures, both see the same ones, and both say so.
 */
export async function comparePictures(
  sent: VerificationRequest,
  received: VerificationRequest,
): Promise<void> {
  await received.accept();
  await phase(sent, VerificationPhase.Ready);
  const verifier = await sent.startVerification(VerificationMethod.Sas);
  const shown = pictures(verifier);
  const done = verifier.verify();
  const otherVerifier = await eventually('the other side to see the choice', () => received.verifier);
  const otherShown = pictures(otherVerifier);
  const otherDone = otherVerifier.verify();
  const [sas, otherSas] = await Promise.all([shown, otherShown]);
  assert.equal(sas.sas.emoji?.length, 7);
  assert.deepEqual(sas.sas.emoji, otherSas.sas.emoji);
  await Promise.all([sas.confirm(), otherSas.confirm(), done, otherDone]);
  await Promise.all([phase(sent, VerificationPhase.Done), phase(received, VerificationPhase.Done)]);
}

function phase(request: VerificationRequest, expected: VerificationPhase): Promise<boolean> {
  return eventually(`phase ${expected} of a verification`, () => {
    assert.notEqual(request.phase, VerificationPhase.Cancelled, `cancelled: ${request.cancellationCode}`);
    return request.phase === expected;
  });
}

function pictures(verifier: Verifier): Promise<ShowSasCallbacks> {
  return new Promise((resolve, reject) => {
    const shown = verifier.getShowSasCallbacks();
    if (shown) return resolve(shown);
    verifier.once(VerifierEvent.ShowSas, resolve);
    verifier.once(VerifierEvent.Cancel, reject);
  });
}

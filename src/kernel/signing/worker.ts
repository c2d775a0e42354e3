import type { KeyObject } from 'node:crypto';
import { type MessagePort, parentPort } from 'node:worker_threads';
import { signingWith } from './sign-text.ts';

/** Texts to sign, answered in the order of arrival. */
export type SigningRequest = readonly string[];

/** What the thread is told of a signer, of which there may be several, one after the other. */
export interface SignerData {
  /** An Ed25519 private key. */
  readonly key: KeyObject;
  /** Where requests come from and answers go, until it is closed. */
  readonly port: MessagePort;
}

parentPort?.on('message', ({ key, port }: SignerData) => {
  const sign = signingWith(key);
  port.on('message', (texts: SigningRequest) => port.postMessage(texts.map(sign)));
});

import type { KeyObject } from 'node:crypto';
import { type MessagePort, parentPort } from 'node:worker_threads';
import { signingWith } from './sign-text.ts';

/** Texts to sign. Requests are answered in the order of arrival. */
export type SigningRequest = readonly string[];

/** Makes the thread serve a signer. A thread may serve several signers, one after the other. */
export interface SignerData {
  /** An Ed25519 private key. */
  readonly key: KeyObject;
  /** Receives requests and sends responses, until it is closed. */
  readonly port: MessagePort;
}

parentPort?.on('message', ({ key, port }: SignerData) => {
  const sign = signingWith(key);
  port.on('message', (texts: SigningRequest) => port.postMessage(texts.map(sign)));
});

import { type KeyObject, sign } from 'node:crypto';
import { type MessagePort, workerData } from 'node:worker_threads';

/** Texts to sign, answered in the order of arrival. */
export type SigningRequest = readonly string[];

/** What the thread is started with. */
export interface SignerData {
  /** An Ed25519 private key. */
  readonly key: KeyObject;
  /** Where requests come from and answers go. */
  readonly port: MessagePort;
}

const { key, port } = workerData as SignerData;

port.on('message', (texts: SigningRequest) => {
  port.postMessage(
    texts.map((text) => sign(null, Buffer.from(text), key).toString('base64').replace(/=+$/, '')),
  );
});

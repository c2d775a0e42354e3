import { type KeyObject, sign } from 'node:crypto';
import { parentPort, workerData } from 'node:worker_threads';

/** Texts to sign, answered in the order of arrival. */
export type SigningRequest = readonly string[];

const key = workerData as KeyObject;
const port = parentPort;
if (!port) throw new Error('this file runs in a worker thread');

port.on('message', (texts: SigningRequest) => {
  port.postMessage(
    texts.map((text) => sign(null, Buffer.from(text), key).toString('base64').replace(/=+$/, '')),
  );
});

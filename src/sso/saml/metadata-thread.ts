import { parentPort } from 'node:worker_threads';
import { readMetadata } from './saml-metadata.ts';

const port = parentPort;
if (!port) throw new Error('this file runs in a worker thread');
port.on('message', (text: string) => {
  try {
    port.postMessage({ providers: readMetadata(text) });
  } catch (error) {
    port.postMessage({ failed: error instanceof Error ? error.message : String(error) });
  }
});

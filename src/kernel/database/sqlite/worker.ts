import { parentPort, workerData } from 'node:worker_threads';
import { SqliteConnection } from './connection.ts';
import { plainError } from './errors.ts';
import { OperationRunner } from './operation-runner.ts';
import type { Request, Response, WorkerOptions } from './protocol.ts';

const { file, access } = workerData as WorkerOptions;
const port = parentPort;
if (!port) throw new Error('this file runs in a worker thread');

const connection = new SqliteConnection(file, access);
const runner = new OperationRunner(connection, access);

port.on('message', (request: Request | 'close') => {
  if (request === 'close') {
    try {
      connection.close();
    } finally {
      port.close();
    }
    return;
  }
  const response: Response = { id: request.id, results: runner.run(request.operations) };
  try {
    port.postMessage(response);
  } catch (error) {
    const results = request.operations.map(() => ({ error: plainError(error) }));
    port.postMessage({ id: request.id, results } satisfies Response);
  }
});

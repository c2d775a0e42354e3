import { parentPort } from 'node:worker_threads';
import { SqliteConnection } from './connection.ts';
import { plainError } from './errors.ts';
import { OperationRunner } from './operation-runner.ts';
import type { FromWorker, Request, Response, ToWorker, WorkerOptions } from './protocol.ts';

const port = parentPort;
if (!port) throw new Error('this file runs in a worker thread');

let connection: SqliteConnection;
let runner: OperationRunner;

function open({ file, access }: WorkerOptions): void {
  connection = new SqliteConnection(file, access);
  runner = new OperationRunner(connection, access);
}

function close(): void {
  connection.close();
  post('closed');
}

function run({ id, operations }: Request): void {
  const response: Response = { id, results: runner.run(operations) };
  try {
    post(response);
  } catch (error) {
    post({ id, results: operations.map(() => ({ error: plainError(error) })) });
  }
}

const post = (message: FromWorker): void => port.postMessage(message);

port.on('message', (message: ToWorker) => {
  if (message === 'close') close();
  else if ('open' in message) open(message.open);
  else run(message);
});

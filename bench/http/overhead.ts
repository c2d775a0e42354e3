/**
 * How much of bare Fastify's speed is left after everything that a request goes through here: `node
 * bench/http/overhead.ts [seconds]`. Both servers answer the same request (JSON body, token, short JSON answer) in
 * processes of their own, in alternating rounds.
 */
import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { connect } from 'node:net';

const connections = 16;
const rounds = 5;
const seconds = Number(process.argv[2] ?? 10);

const body = JSON.stringify({ msgtype: 'm.text', body: 'The quick brown fox jumps over the lazy dog', n: 1 });
const request =
  'PUT /_matrix/client/v3/rooms/!room:test/send/m.room.message/17 HTTP/1.1\r\nHost: localhost\r\n' +
  'Authorization: Bearer token\r\nContent-Type: application/json\r\n' +
  `Content-Length: ${body.length}\r\n\r\n${body}`;

interface Contender {
  readonly name: string;
  readonly process: ChildProcess;
  readonly port: number;
  readonly rates: number[];
}

const contenders: Contender[] = [];
for (const name of ['fastify', 'hearth']) {
  const child = fork(new URL(`./${name}-server.ts`, import.meta.url));
  child.once('exit', (code) => process.exit(code ?? 0));
  const [port] = (await once(child, 'message')) as [number];
  contenders.push({ name, process: child, port, rates: [] });
}
for (const { port } of contenders) await drive(port, 1);
for (let round = 0; round < rounds; round++) {
  for (const { port, rates } of contenders) rates.push(await drive(port, seconds / rounds / 2));
}
for (const { process: child } of contenders) child.removeAllListeners('exit').kill();

const [bare, ours] = contenders.map(({ rates }) => median(rates)) as [number, number];
console.log(
  `bare Fastify ${bare.toFixed(0)}/s, Hearth ${ours.toFixed(0)}/s: ${((ours / bare) * 100).toFixed(0)} %`,
);

/** Sends requests on every connection, one after the other. @returns answers per second */
async function drive(port: number, duration: number): Promise<number> {
  const start = performance.now();
  const end = start + duration * 1000;
  const counts = await Promise.all(Array.from({ length: connections }, () => client(port, end)));
  const answers = counts.reduce((sum, count) => sum + count, 0);
  return (answers / (performance.now() - start)) * 1000;
}

function client(port: number, end: number): Promise<number> {
  return new Promise((resolve, reject) => {
    let answers = 0;
    const socket = connect({ port, host: '127.0.0.1', noDelay: true }, () => socket.write(request));
    socket.on('error', reject);
    // Answers are small enough to come in one piece.
    socket.on('data', (data: Buffer) => {
      if (!data.includes('200 OK')) return reject(new Error(data.toString()));
      answers++;
      if (performance.now() < end) socket.write(request);
      else {
        socket.destroy();
        resolve(answers);
      }
    });
  });
}

function median(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)]!;
}

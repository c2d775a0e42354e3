/**
 * Compares the cost of a request to Hearth's HTTP kernel with the cost of a request to bare Fastify:
 * `node bench/http/overhead.ts [seconds]`. Both servers answer the same request (JSON body, token, short JSON answer)
 * in their own processes, in alternating rounds. What counts is the CPU time of the servers: unlike the rate, it does
 * not depend on other work of the machine.
 */
import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { connect } from 'node:net';
import { median } from '../load/statistics.ts';

const connections = 16;
const rounds = 5;

/** Duration of the measurements of both servers in all rounds together. */
const seconds = Number(process.argv[2] ?? 10);

const body = JSON.stringify({ msgtype: 'm.text', body: 'The quick brown fox jumps over the lazy dog', n: 1 });
const request =
  'PUT /_matrix/client/v3/rooms/!room:test/send/m.room.message/17 HTTP/1.1\r\nHost: localhost\r\n' +
  'Authorization: Bearer token\r\nContent-Type: application/json\r\n' +
  `Content-Length: ${body.length}\r\n\r\n${body}`;

interface MeasuredServer {
  readonly name: string;
  readonly process: ChildProcess;
  readonly port: number;
  /** Answers per second, for each round. */
  readonly rates: number[];
  /** Microseconds of CPU time per answer, for each round. */
  readonly costs: number[];
}

const servers: MeasuredServer[] = [];
for (const name of ['fastify', 'hearth']) {
  const child = fork(new URL(`./${name}-server.ts`, import.meta.url));
  child.once('exit', (code) => process.exit(code ?? 0));
  const [port] = (await once(child, 'message')) as [number];
  servers.push({ name, process: child, port, rates: [], costs: [] });
}
for (const { port } of servers) await drive(port, 1);
for (let round = 0; round < rounds; round++) {
  for (const server of servers) await measure(server, seconds / rounds / 2);
}
for (const { process: child } of servers) child.removeAllListeners('exit').kill();

for (const { name, rates, costs } of servers) {
  console.log(
    `${name}: ${median(rates).toFixed(0)} answers/s, ${median(costs).toFixed(1)} us of CPU time each`,
  );
}
const [bare, hearth] = servers.map(({ costs }) => median(costs)) as [number, number];
console.log(`${((bare / hearth) * 100).toFixed(0)} % of bare Fastify`);

async function measure(
  { process: server, port, rates, costs }: MeasuredServer,
  duration: number,
): Promise<void> {
  const before = await processorTime(server);
  const answers = await drive(port, duration);
  rates.push(answers / duration);
  costs.push(((await processorTime(server)) - before) / answers);
}

/** Microseconds of CPU time that the server has used so far. */
async function processorTime(server: ChildProcess): Promise<number> {
  server.send('usage');
  const [{ user, system }] = (await once(server, 'message')) as [NodeJS.CpuUsage];
  return user + system;
}

/**
 * Sends requests for `duration` seconds: on all connections at the same time, on each of them one after the other.
 * @returns the number of answers
 */
async function drive(port: number, duration: number): Promise<number> {
  const end = performance.now() + duration * 1000;
  const counts = await Promise.all(Array.from({ length: connections }, () => client(port, end)));
  return counts.reduce((sum, count) => sum + count, 0);
}

/** Sends requests on one connection until `end` (of `performance.now()`). @returns the number of answers */
function client(port: number, end: number): Promise<number> {
  return new Promise((resolve, reject) => {
    let answers = 0;
    const socket = connect({ port, host: '127.0.0.1', noDelay: true }, () => socket.write(request));
    socket.on('error', reject);
    // Answers are so small that each arrives in one piece.
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

/**
 * Measures federation on SQLite, and compares each operation with the minimal work that it needs:
 * `node bench/federation/main.ts`.
 */
import { fanOut } from './fan-out.ts';
import { largeJoin } from './large-join.ts';
import { receivedMessages } from './received.ts';

await fanOut('sqlite');
await receivedMessages('sqlite', 1);
await receivedMessages('sqlite', 100);
await largeJoin(5_000, 20_000);

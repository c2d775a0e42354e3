/**
 * Measures federation, compared with the minimal work of each operation: `node bench/federation/main.ts`, on
 * SQLite.
 */
import { fanOut } from './fan-out.ts';
import { largeJoin } from './large-join.ts';
import { received } from './received.ts';

await fanOut('sqlite');
await received('sqlite', 1);
await received('sqlite', 100);
await largeJoin(5_000, 20_000);

/** How much federation costs beyond what it can not do without: `node bench/federation/main.ts`, on SQLite. */
import { fanOut } from './fan-out.ts';
import { largeJoin } from './large-join.ts';
import { received } from './received.ts';

await fanOut('sqlite');
await received('sqlite', 1);
await received('sqlite', 100);
await largeJoin(5_000, 20_000);

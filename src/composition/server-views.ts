import { openServerViews } from '../admin/index.ts';
import { effectiveOptions } from '../configuration/effective-options.ts';
import type { HearthConfiguration } from '../configuration.ts';
import type { FederationSender } from '../federation/index.ts';
import type { OptionPlaces } from '../kernel/config/index.ts';
import { RequestCounts } from '../kernel/http/index.ts';
import { ProcessReading } from '../kernel/observability/index.ts';
import type { Rooms } from '../rooms/index.ts';
import type { DailyFigures } from '../statistics/index.ts';
import { databaseOptionsOf, type Kernel } from './kernel.ts';
import type { OpenedSlices } from './opened-slices.ts';

interface Deps {
  readonly rooms: Rooms;
  readonly sender: FederationSender;
  readonly dailyFigures: DailyFigures;
  /** File and line of each option that the configuration files set, by the option's path. */
  readonly origins: OptionPlaces;
}

export interface ServerViews {
  /** Counts the requests that the server answers. */
  readonly requests: RequestCounts;
  /** Replaces the options that are shown, and their files and lines, after a reload. */
  show(configuration: HearthConfiguration, origins: OptionPlaces): void;
}

/** Opens the parts of the admin API that show the state of the whole server: its load, its growth and its options. */
export function startServerViews(kernel: Kernel, deps: Deps, opened: OpenedSlices): ServerViews {
  const requests = new RequestCounts();
  let shown = { values: kernel.configuration, origins: deps.origins };
  opened.add(
    'views of the server',
    openServerViews({
      ...kernel,
      databaseKind: databaseOptionsOf(kernel).kind,
      requests,
      processReading: new ProcessReading(kernel),
      sender: deps.sender,
      engine: deps.rooms.engine,
      dailyFigures: deps.dailyFigures,
      effectiveOptions: () => effectiveOptions(shown.values, shown.origins),
    }),
  );
  return {
    requests,
    show(values, origins) {
      shown = { values, origins };
    },
  };
}

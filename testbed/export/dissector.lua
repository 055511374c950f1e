-- Wireshark's dissector of the causal-ordering testbed's messages: header, reliable channel, and the
-- control information of every protocol. `testbed dissector` writes this file; the tables below come
-- from the wire format of the version that wrote it.
--
-- It is heuristic: any UDP datagram that begins like a message is dissected, whatever its port. Filters:
-- co.source == 3 && co.seq == 7, co.vector.2 > 5 (an entry of a vector), co.kind, co.channel.ack.

--@TABLES@

local co = Proto("co", "Causal-ordering testbed")
local malformed = ProtoExpert.new("co.malformed", "Malformed", expert.group.MALFORMED, expert.severity.ERROR)
local damaged = ProtoExpert.new("co.damaged", "Check does not match", expert.group.CHECKSUM, expert.severity.WARN)
co.experts = { malformed, damaged }
co.prefs.processes = Pref.uint("Processes", 0, "Number of processes of the run; 0: guessed (for ks-prime)")

local field = {}
for _, name in ipairs(INTS) do field[name] = ProtoField.uint64("co." .. name, name, base.DEC) end
for _, name in ipairs(VECTORS) do
    for i = 0, ENTRIES - 1 do
        local entry = name .. "." .. i
        field[entry] = ProtoField.uint64("co." .. entry, name .. "[" .. i .. "]", base.DEC)
    end
end
for _, name in ipairs(BYTES) do field[name] = ProtoField.bytes("co." .. name, name) end
co.fields = field

-- Reading by a layout: `r` is what is left of the bytes, `env` the fields read so far.

local readers = {}

local function read(r, layout, tree, prefix, env)
    for _, f in ipairs(layout) do readers[f[1]](r, f, tree, prefix, env) end
end

local function take(r, size)
    if size > r.stop - r.at then error("cut short", 0) end
    r.at = r.at + size
    return r.tvb(r.at - size, size)
end

local function count_of(r, count, size, env)
    local left = r.stop - r.at
    if count == "rest" then
        if left % size ~= 0 then error(left .. " bytes where whole integers belong", 0) end
        return left / size
    end
    local announced = type(count) == "number" and count or env[count]
    if announced * size > left then error(announced .. " of " .. count .. " announced, cut short", 0) end
    return announced
end

local function width_of(width, env)
    if width == "wide" then return env.wide ~= 0 and 8 or 4 end
    return width
end

function readers.int(r, f, tree, prefix, env)
    local size = width_of(f[3], env)
    local range = take(r, size)
    if size <= 4 then env[f[2]] = range:uint() end
    tree:add(field[prefix .. f[2]], range)
end

function readers.ints(r, f, tree, prefix, env)
    local name, size = prefix .. f[2], width_of(f[4], env)
    local count = count_of(r, f[3], size, env)
    for i = 0, count - 1 do
        local range = take(r, size)
        local item = tree:add(field[name], range)
        item:set_text(string.format("%s[%d]: %s", f[2], i, tostring(range:uint64())))
        if i < ENTRIES then tree:add(field[name .. "." .. i], range):set_hidden() end
    end
end

function readers.bits(r, f, tree, prefix, env)
    local range = take(r, 4)
    local word = range:uint()
    for _, part in ipairs(f[2]) do
        local name, lowest, bits = part[1], part[2], part[3]
        env[name] = math.floor(word / 2 ^ lowest) % 2 ^ bits
        tree:add(field[prefix .. name], range, UInt64.new(env[name]))
    end
end

function readers.bytes(r, f, tree, prefix, env)
    local count = count_of(r, f[3], 1, env)
    if count > 0 then tree:add(field[prefix .. f[2]], take(r, count)) end
end

readers["repeat"] = function(r, f, tree, prefix, env)
    local left = f[3] == "rest" and math.huge or env[f[3]]
    while left > 0 and (f[3] ~= "rest" or r.at < r.stop) do
        local start = r.at
        local branch = tree:add(co, r.tvb(start), f[2])
        read(r, f[4], branch, prefix .. f[2] .. ".", {})
        branch:set_len(r.at - start)
        left = left - 1
    end
end

function readers.when(r, f, tree, prefix, env)
    local there = f[2] == "rest" and r.at < r.stop or f[2] ~= "rest" and env[f[2]] ~= 0
    if there then read(r, f[3], tree, prefix, env) end
end

function readers.nested(r, f, tree, prefix, env)
    local kind = type(f[2]) == "number" and f[2] or env[f[2]]
    local length = count_of(r, f[3], 1, env)
    local known = PROTOCOLS[r.protocol] and PROTOCOLS[r.protocol].kinds[kind]
    if not known then error("unknown kind " .. kind, 0) end
    local inner = { tvb = r.tvb, at = r.at, stop = r.at + length, protocol = r.protocol, source = 0 }
    read(inner, known.layout, tree, "", {})
    if inner.at ~= inner.stop then error("bytes left over", 0) end
    r.at = inner.stop
end

-- What no field says follows from the length: the number of processes.

local specials = {}

function specials.matrix(r, env)
    local n = math.floor(math.sqrt((r.stop - r.at) / 4))
    env.entries = n * n
end

local function ones(r, size, lowest, highest)
    local count = 0
    for i = 0, size - 1 do
        local byte, base = r.tvb(r.at + i, 1):uint(), 8 * (size - 1 - i)
        for bit = 0, 7 do
            local set = math.floor(byte / 2 ^ bit) % 2 == 1
            if set and base + bit >= lowest and base + bit < highest then count = count + 1 end
        end
    end
    return count
end

local function fits(r, n)
    local size, length = 4 * math.ceil(n * (n + 1) / 32), r.stop - r.at
    if size > length or ones(r, size, n * (n + 1), 8 * size) > 0 then return nil end
    return size + 4 * ones(r, size, n, n * (n + 1)) == length and size or nil
end

function specials.bits(r, env)
    if co.prefs.processes > 0 then
        env.bit_bytes = fits(r, co.prefs.processes)
    else
        local n = r.source + 1
        while not env.bit_bytes and n * n <= 8 * (r.stop - r.at) do
            env.bit_bytes = fits(r, n)
            n = n + 1
        end
    end
    if not env.bit_bytes then error("not an array of bits and its clocks", 0) end
end

function readers.special(r, f, tree, prefix, env) specials[f[2]](r, env) end

-- The whole message.

local function is_ours(tvb)
    return tvb:len() >= HEADER_SIZE and tvb(0, 2):string() == MAGIC and tvb(2, 1):uint() == VERSION
end

local bitwise = bit or bit32

local function check_of(tvb)
    local crc, bytes = 0, tvb:range():bytes()
    for i = 0, bytes:len() - 1 do
        local byte = (i == CHECK_AT or i == CHECK_AT + 1) and 0 or bytes:get_index(i)
        crc = bitwise.bxor(crc, byte * 256)
        for _ = 1, 8 do
            local carry = crc >= 0x8000
            crc = (crc * 2) % 0x10000
            if carry then crc = bitwise.bxor(crc, 0x1021) end
        end
    end
    return crc
end

local function read_control(tvb, root, env, known)
    local start, stop = HEADER_SIZE, HEADER_SIZE + env.control_size
    if stop > tvb:len() then error("control information cut short", 0) end
    local middle = start + 4 * env.channel_words
    if middle > stop then error("a channel's header that does not fit", 0) end
    if middle > start then
        local r = { tvb = tvb, at = start, stop = middle, protocol = env.protocol }
        local branch = root:add(co, tvb(start, middle - start), "reliable channel")
        read(r, CHANNEL, branch, "channel.", { numbered = env.kind ~= ACK and 1 or 0 })
    end
    if stop > middle then
        local r = { tvb = tvb, at = middle, stop = stop, protocol = env.protocol, source = env.source }
        local branch = root:add(co, tvb(middle, stop - middle), "control information")
        read(r, known and known.layout or WORDS, branch, "", {})
        if r.at ~= r.stop then error("bytes left over", 0) end
    end
    if tvb:len() > stop then root:add(field.payload, tvb(stop)) end
end

function co.dissector(tvb, pinfo, tree)
    if not is_ours(tvb) then return 0 end
    pinfo.cols.protocol = "CO"
    local root, env = tree:add(co, tvb()), {}
    read({ tvb = tvb, at = 3, stop = HEADER_SIZE }, HEADER, root, "", env)
    local protocol = PROTOCOLS[env.protocol]
    local known = protocol and protocol.kinds[env.kind]
    local kind = env.kind == ACK and "acknowledgement" or known and known.name or "kind " .. env.kind
    local what = string.format("%s %s", protocol and protocol.name or "protocol " .. env.protocol, kind)
    local name = env.seq > 0 and string.format(" m(%d,%d)", env.source, env.seq) or " of " .. env.source
    root:append_text(", " .. what .. name)
    pinfo.cols.info = string.format("%s%s, %d B control", what, name, env.control_size)
    if bitwise and check_of(tvb) ~= env.check then root:add_proto_expert_info(damaged) end
    local fine, reason = pcall(read_control, tvb, root, env, known)
    if not fine then root:add_proto_expert_info(malformed, tostring(reason)) end
    return tvb:len()
end

co:register_heuristic("udp", function(tvb, pinfo, tree)
    if not is_ours(tvb) then return false end
    co.dissector(tvb, pinfo, tree)
    return true
end)

if gui_enabled() then
    register_menu("Causal order/Colour the first ten processes", function()
        for slot = 1, 10 do set_color_filter_slot(slot, "co.source == " .. slot - 1) end
    end, MENU_TOOLS_UNSORTED)
end
